"""A plan that is no longer needed goes, and data files that no log will name go with it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from forebay.batch.attempt.attempt import Parts
from forebay.batch.plan import Plan, Staged
from forebay.declaration.kept.pinned import pinned
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.lake.layout import VAULT
from forebay.privacy.vault import values_of
from forebay.table.data_files.data_file import DataFile
from forebay.table.staged import StagedTable

AT = datetime(2026, 11, 22, tzinfo=UTC)


def service(vault: Path) -> Service:
    privacy = f'subject = "user"\nsecret = "{vault}-secret"\nvault = "{vault}"\nvault_key = "{vault}-key"\n'
    personal = 'personal = [{ path = "user", become = "token" }, { path = "email", vault = true }]\n'
    text = f'name = "studio"\n[privacy]\n{privacy}{personal}[[tables]]\nname = "{{game}}"\n'
    return parse_service({"service.toml": text})


class Values:
    """A plan that has values for a vault, in a lake in which another vault is declared since."""

    def __init__(self, folder: Path, **more: Any) -> None:
        former = service(folder / "former")
        self.folder = Path(values_of(former.vault))
        self.folder.mkdir(parents=True)
        (self.folder / "part-1.parquet").write_bytes(b"values of a person")
        file = DataFile(VAULT, "part-1.parquet", (), 18, 1, 0, "{}")
        staged = Staged(beside={VAULT: StagedTable(VAULT, "{}", None, ("day",), (file,), replaces=True)})
        told: dict[str, Any] = {"service": {**pinned(former), **more}, "staged": staged, "settled": False}
        self.plan = Plan(generation="g", batch=3, began_at=AT, files=(), ends=(), fates=(), **told)
        nothing: Any = MagicMock()
        told: dict[str, Any] = {"generation": nothing, "ledger": nothing, "emit": nothing}
        self.parts = Parts(nothing, former, lake=str(folder / "lake"), **told)
        self.parts.plans.pin(self.plan)

    def must_be_gone(self) -> None:
        assert self.parts.plans.left() == []
        assert list(self.folder.iterdir()) == []


def test_the_values_of_a_withdrawn_plan_leave_the_vault_of_that_plan(tmp_path: Path) -> None:
    values = Values(tmp_path)
    values.parts.withdraw(values.plan)
    values.must_be_gone()


def test_the_values_that_spark_wrote_once_more_leave_the_vault_of_that_plan(tmp_path: Path) -> None:
    values = Values(tmp_path)
    values.parts.forget(values.plan)
    values.must_be_gone()


def test_a_plan_is_withdrawn_also_where_other_code_made_it(tmp_path: Path) -> None:
    """It binds nobody, so nobody needs to understand its declarations."""
    values = Values(tmp_path, unheard_of=1)
    values.parts.withdraw(values.plan)
    values.must_be_gone()
