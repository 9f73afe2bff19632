"""A plan that was never settled goes, and its data files go with it."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forebay.batch.attempt.attempt import Parts
from forebay.batch.plan import Plan, Plans, Staged
from forebay.declaration.kept.pinned import pinned
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.lake.layout import VAULT
from forebay.lake.objects import open_objects
from forebay.privacy.vault import values_of
from forebay.table.data_files.data_file import DataFile
from forebay.table.staged import StagedTable

AT = datetime(2026, 11, 22, tzinfo=UTC)


def service(vault: Path) -> Service:
    privacy = f'subject = "user"\nsecret = "{vault}-secret"\nvault = "{vault}"\nvault_key = "{vault}-key"\n'
    personal = 'personal = [{ path = "user", become = "token" }, { path = "email", vault = true }]\n'
    text = f'name = "studio"\n[privacy]\n{privacy}{personal}[[tables]]\nname = "{{game}}"\n'
    return parse_service({"service.toml": text})


def test_the_values_for_a_vault_leave_the_vault_of_the_plan_also_where_another_one_is_declared_since(
    tmp_path: Path,
) -> None:
    former, present = service(tmp_path / "former"), service(tmp_path / "present")
    folder = Path(values_of(str(tmp_path / "former")))
    folder.mkdir(parents=True)
    (folder / "part-1.parquet").write_bytes(b"values of a person")
    staged = StagedTable(VAULT, "{}", None, ("day",), (DataFile(VAULT, "part-1.parquet", (), 18, 1, 0, "{}"),))
    told: dict[str, Any] = {"service": pinned(former), "staged": Staged(beside={VAULT: staged}), "settled": False}
    plan = Plan(generation="g", batch=3, began_at=AT, files=(), ends=(), fates=(), **told)
    plans = Plans(open_objects(str(tmp_path / "plans")), "studio")
    plans.pin(plan)
    nothing: dict[str, Any] = dict.fromkeys(field.name for field in fields(Parts))
    parts = Parts(
        **{**nothing, "lake": str(tmp_path / "lake"), "plans": plans, "clock": lambda: AT, "may_have_begun": bool}
    )
    parts.withdraw(plan, present)
    assert plans.left() == []
    assert list(folder.iterdir()) == []
