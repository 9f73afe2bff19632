"""A job does not begin an empty ledger beside tables that jobs have filled."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from forebay.batch.plan import Plan, Plans
from forebay.errors import InvalidConfiguration
from forebay.jobs import lost_ledger
from forebay.jobs.first_batch import first_batch
from forebay.jobs.generation import generation_of
from forebay.jobs.lost_ledger import must_have_its_ledger
from forebay.lake.objects import open_objects
from tests.operate.ledger import entry, write_ledger

REFUSED = r"has no ledger \(_forebay/ledger\), but table alpha has rows.*restore the ledger"


def written(lake: Path, *app_ids: str, number: int = 7) -> None:
    """A table with the transactions of these applications."""
    log = lake / "alpha" / "_delta_log"
    log.mkdir(parents=True)
    schema = json.dumps({"type": "struct", "fields": []})
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": "t", "schemaString": schema, "partitionColumns": [], "configuration": {}}},
        *({"txn": {"appId": app_id, "version": number}} for app_id in app_ids),
    ]
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))


def half_done(lake: Path, batch: int, service: str = "games", *, had_ledger: bool = False) -> None:
    told = {"began_at": datetime(2026, 11, 21, tzinfo=UTC), "service": {}, "files": (), "ends": (), "fates": ()}
    plan = Plan(generation="g", batch=batch, had_ledger=had_ledger, **told)  # type: ignore[arg-type]
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


def test_a_batch_that_began_beside_a_ledger_is_no_first_one(tmp_path: Path) -> None:
    """Its rows are the newest ones of their table. The ledger went while it ran."""
    written(tmp_path, "forebay/games/g")
    half_done(tmp_path, 7, had_ledger=True)
    with pytest.raises(InvalidConfiguration, match=REFUSED):
        must_have_its_ledger(str(tmp_path))


@pytest.mark.parametrize(
    ("batch", "ended", "others", "taken"),
    [(0, False, [], True), (1, False, [], False), (0, True, [], False), (0, False, ["forebay/games/retry"], False)],
)
def test_a_first_batch_goes_on_although_somebody_deleted_its_plan(
    tmp_path: Path, batch: int, ended: bool, others: list[str], taken: bool
) -> None:
    """Its files are read once more. Nothing else is in the lake."""
    stream = tmp_path / "checkpoint" / "stream"
    (stream / "commits").mkdir(parents=True)
    (stream / "metadata").write_text('{"id": "some"}')
    if ended:
        (stream / "commits" / "0").write_text("v1")
    checkpoint = open_objects(str(tmp_path / "checkpoint"))
    written(tmp_path / "lake", f"forebay/games/{generation_of(checkpoint)}", *others, number=batch)
    first = first_batch(checkpoint, "games")
    if taken:
        must_have_its_ledger(str(tmp_path / "lake"), first)
    else:
        with pytest.raises(InvalidConfiguration, match=REFUSED):
            must_have_its_ledger(str(tmp_path / "lake"), first)


def test_a_checkpoint_without_a_stream_has_no_first_batch(tmp_path: Path) -> None:
    assert first_batch(open_objects(str(tmp_path)), "games") == frozenset()
