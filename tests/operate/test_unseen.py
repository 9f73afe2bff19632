"""Which landed objects may hold records that no row tells of: each of which a record is in no table that was searched."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forebay.declaration.service import Service
from forebay.lake.health import HealthRecords
from forebay.lake.layout import PARKED, QUARANTINE
from forebay.operate.lake_view import LakeView
from forebay.operate.people.unseen import Unseen, unseen
from tests.operate.ledger import AT, entry, write_ledger

ALL = ("alpha", QUARANTINE, PARKED)


def found(lake: Path, row: dict[str, Any], searched: tuple[str, ...] = ALL) -> list[str]:
    write_ledger(lake, row, entry("whole.json", tables={"alpha": 3}))
    return [one.key for one in unseen(LakeView(str(lake)), Service(name="games", tables=[{"name": "alpha"}]), searched)]


@pytest.mark.parametrize(
    "more",
    [
        {"tables": {"alpha": 2}, "records": 3, "dropped": 1},
        {"outcome": "duplicate"},
        {"outcome": "superseded", "records": 2, "dropped": 2},
        {"outcome": "skipped"},
        {"outcome": "forgotten", "records": 2, "dropped": 2},
        {"outcome": "ignored"},
        {"outcome": "unreadable"},
        {"outcome": "denied"},
        {"tables": {"alpha": 2, "beta": 1}},
    ],
)
def test_an_object_of_which_a_record_is_in_no_searched_table_may_hold_one(tmp_path: Path, more: dict[str, Any]) -> None:
    assert found(tmp_path, entry("some.json", **more)) == ["some.json"]


@pytest.mark.parametrize(
    "more",
    [
        {"tables": {"alpha": 2}, "records": 4, "quarantined": 1, "parked": 1},
        {"outcome": "empty"},
        {"outcome": "replay", "tables": {"alpha": 1}},
        {"service": "other", "records": 1, "dropped": 1},
    ],
)
def test_one_of_which_every_record_is_in_searched_tables_holds_no_other(tmp_path: Path, more: dict[str, Any]) -> None:
    assert found(tmp_path, entry("some.json", **more)) == []


@pytest.mark.parametrize(("table", "count"), [(QUARANTINE, "quarantined"), (PARKED, "parked")])
def test_held_records_that_expired_or_were_not_searched_are_in_no_table(tmp_path: Path, table: str, count: str) -> None:
    rows = [
        entry("old.json", at=AT - timedelta(days=9), records=1, **{count: 1}),
        entry("new.json", records=1, **{count: 1}),
    ]
    assert found(tmp_path / "a", rows[1], tuple(name for name in ALL if name != table)) == ["new.json"]
    lake, until = tmp_path / "b", str((AT - timedelta(days=3)).date())
    HealthRecords(str(lake)).update(table, lambda was: replace(was, expired_before={"games": until}))
    assert found(lake, rows[1]) == []
    assert found(lake, rows[0]) == ["old.json"]


def test_an_object_is_told_once_with_the_size_of_its_versions(tmp_path: Path) -> None:
    write_ledger(tmp_path, *(entry("a.json", etag=etag, outcome="duplicate") for etag in ("e1", "e2")))
    service = Service(name="games", tables=[{"name": "alpha"}])
    assert unseen(LakeView(str(tmp_path)), service, ALL) == [Unseen("landing", "a.json", 200)]
