"""The plan of a retry: whether there is one, and whether older code can read it after a rollback."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import forebay.batch.retrying.planning as planning
from forebay.batch.retrying.moving import Retried
from forebay.batch.retrying.plan import Choice, RetryPlan
from forebay.batch.retrying.retry import Retry
from forebay.declaration.loading import parse_service
from forebay.errors import Halt
from forebay.lake.layout import last_versions_of
from forebay.lake.objects import open_objects
from forebay.ledger.last_versions import KeptVersions, Versions
from forebay.table.kernel import NO_VERSION
from tests.batch.world import SERVICE

PLAN = RetryPlan(3, 17, "2026-05-05T00:00:00+00:00", Choice("parked", table="alpha"), {"name": "studio"}, 4)


def by_newer_code(**more: Any) -> bytes:
    plain = json.loads(PLAN.as_json())
    plain["choice"] |= more.pop("choice", {})
    return json.dumps({**plain, **more}).encode()


def test_a_plan_is_read_as_it_was_written() -> None:
    assert RetryPlan.of_json(PLAN.as_json()) == PLAN


@pytest.mark.parametrize("more", [{"colour": None}, {"colours": []}, {"choice": {"colour": None}}], ids=str)
def test_what_is_empty_does_not_stop_older_code(more: dict[str, Any]) -> None:
    assert RetryPlan.of_json(by_newer_code(**more)) == PLAN


@pytest.mark.parametrize("more", [{"colour": "blue"}, {"choice": {"colour": "blue"}}], ids=str)
def test_what_may_decide_is_refused_with_the_remedy(more: dict[str, Any]) -> None:
    with pytest.raises(
        Halt, match=r"a retry of held records .*does not understand its colour. Start that version again"
    ):
        RetryPlan.of_json(by_newer_code(**more))


@pytest.mark.parametrize(
    ("records", "last"),
    [([], ""), ([9], ""), ([1, 1, 1], ""), ([1, 1, 1, 1], "2"), ([3, 3], "0"), ([9, 1], "0"), ([2, 3, 1], "1")],
    ids=str,
)
def test_a_plan_takes_as_many_files_as_its_driver_may_hold_and_at_least_one(
    monkeypatch: pytest.MonkeyPatch, records: list[int], last: str
) -> None:
    monkeypatch.setattr(planning, "FILES_AT_ONCE", 3)
    monkeypatch.setattr(planning, "RECORDS_AT_ONCE", 5)
    assert planning.last_of([str(number) for number in range(len(records))], records) == last


def test_nothing_is_retried_before_the_first_batch_has_ended(tmp_path: Path) -> None:
    """Its driver died between the commits of the quarantine and of the ledger."""
    logs: Any = SimpleNamespace(version_at=lambda path, *, again: NO_VERSION if path.endswith("/ledger") else 0)
    no_spark: Any = None
    tries = Retry(no_spark, parse_service({"service.toml": SERVICE}), lake=f"file://{tmp_path}", emit=print, logs=logs)
    assert not tries.concerns_any(Choice("quarantine"))
    assert tries.run(Choice("quarantine")) == Retried()
    assert [*tmp_path.rglob("*.json")] == []


def test_a_retry_is_begun_for_an_unfinished_one_and_not_where_nothing_was_ever_held(tmp_path: Path) -> None:
    logs: Any = SimpleNamespace(version_at=lambda path, *, again: 0 if path.endswith("/ledger") else NO_VERSION)
    no_spark: Any = None
    tries = Retry(no_spark, parse_service({"service.toml": SERVICE}), lake=f"file://{tmp_path}", emit=print, logs=logs)
    assert not tries.concerns_any(Choice("quarantine"))
    tries.planning.plans.write(planning.PLAN, PLAN.as_json())
    assert tries.concerns_any(Choice("quarantine"))


def test_a_batch_that_ends_while_a_retry_begins_is_not_taken_for_an_older_ledger(tmp_path: Path) -> None:
    """It commits the ledger, then keeps its version."""
    lake, ledger = f"file://{tmp_path}", iter(range(7, 100))
    kept = KeptVersions(open_objects(last_versions_of(lake)), "studio")

    def version_at(path: str, *, again: bool) -> int:
        assert again, "others commit beside it"
        if not path.endswith("/ledger"):
            return NO_VERSION
        version = next(ledger)
        kept.keep(Versions(version + 1, None, None))
        return version

    logs, no_spark = SimpleNamespace(version_at=version_at), None
    service = parse_service({"service.toml": SERVICE})
    tries = Retry(no_spark, service, lake=lake, emit=print, logs=logs)  # type: ignore[arg-type]
    assert tries.run(Choice("quarantine")) == Retried()


def test_a_retry_writes_with_its_catalog(tmp_path: Path) -> None:
    service, nothing = parse_service({"service.toml": SERVICE}), cast(Any, None)
    catalog, logs = cast(Any, object()), cast(Any, SimpleNamespace())
    tries = Retry(nothing, service, lake=f"file://{tmp_path}", emit=print, logs=logs, catalog=catalog)
    assert tries._writing(PLAN, service, ()).catalog is catalog


def test_a_retry_does_not_compare_with_ids_that_somebody_restored_since_it_began(tmp_path: Path) -> None:
    """A retry that goes on would compare with that version, too, although the newest ids are back by then."""
    place, lake = f"{tmp_path}/_forebay/ids", f"file://{tmp_path}"
    for number in range(3):
        write_deltalake(place, pa.table({"n": [number]}), mode="append")
    service, nothing = parse_service({"service.toml": SERVICE}), cast(Any, None)
    KeptVersions(open_objects(last_versions_of(lake)), service.name).keep(Versions(7, 2, None))
    logs = SimpleNamespace(version_at=lambda path, again: DeltaTable(place).version())
    tries = Retry(nothing, service, lake=lake, emit=print, logs=cast(Any, logs))
    assert tries._ids_must_stand() == 2
    DeltaTable(place).restore(0)
    with pytest.raises(Halt, match="a RESTORE took _forebay/ids back from version 2: duplicates would pass"):
        tries._ids_must_stand()
    DeltaTable(place).restore(2)
    assert tries._ids_must_stand() == 4
