"""A job does not begin an empty ledger beside tables that jobs have filled."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from forebay.batch.plan import Plan, Plans
from forebay.errors import InvalidConfiguration
from forebay.jobs import lost_ledger
from forebay.jobs.lost_ledger import must_have_its_ledger
from forebay.lake.objects import open_objects
from tests.operate.ledger import entry, write_ledger

REFUSED = r"has no ledger \(_forebay/ledger\), but table alpha has rows.*restore the ledger"


def written(lake: Path, *app_ids: str) -> None:
    """A table with the transactions of these applications."""
    log = lake / "alpha" / "_delta_log"
    log.mkdir(parents=True)
    schema = json.dumps({"type": "struct", "fields": []})
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": "t", "schemaString": schema, "partitionColumns": [], "configuration": {}}},
        *({"txn": {"appId": app_id, "version": 7}} for app_id in app_ids),
    ]
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))


def half_done(lake: Path, batch: int, service: str = "games") -> None:
    began = datetime(2026, 11, 21, tzinfo=UTC)
    plan = Plan(generation="g", batch=batch, began_at=began, service={}, files=(), ends=(), fates=())
    Plans(open_objects(str(lake / "_forebay" / "plans")), service).pin(plan)


@pytest.mark.parametrize("app_id", ["forebay/games/g", "forebay/games/retry", "forebay/another/h"])
def test_a_lake_that_lost_its_ledger_is_refused(tmp_path: Path, app_id: str) -> None:
    written(tmp_path, app_id)
    with pytest.raises(InvalidConfiguration, match=REFUSED):
        must_have_its_ledger(str(tmp_path))


def test_a_ledger_that_is_there_is_enough(tmp_path: Path) -> None:
    written(tmp_path, "forebay/games/g")
    write_ledger(tmp_path, entry("in/a.json"))
    must_have_its_ledger(str(tmp_path))


def test_tables_that_no_job_filled_need_no_ledger(tmp_path: Path) -> None:
    """An adopted table, from which a person was erased, and old rows expired."""
    must_have_its_ledger(str(tmp_path))
    written(tmp_path, "another-tool", "forebay-rollup:t", "forebay/games/erase", "forebay/games/expiry/alpha")
    must_have_its_ledger(str(tmp_path))


def test_the_first_batch_may_be_half_done(tmp_path: Path) -> None:
    written(tmp_path, "forebay/games/g")
    half_done(tmp_path, 6)
    with pytest.raises(InvalidConfiguration, match=REFUSED):
        must_have_its_ledger(str(tmp_path))
    half_done(tmp_path, 7)
    must_have_its_ledger(str(tmp_path))


@pytest.mark.parametrize("has_ended", [False, True])
def test_another_service_may_load_its_first_batch_meanwhile(
    tmp_path: Path, has_ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tables_of(lake: str) -> list[str]:
        written(tmp_path, "forebay/another/g")
        if has_ended:
            write_ledger(tmp_path, entry("in/a.json", service="another"))
        else:
            half_done(tmp_path, 7, "another")
        return ["alpha"]

    monkeypatch.setattr(lost_ledger, "tables_of", tables_of)
    must_have_its_ledger(str(tmp_path))
