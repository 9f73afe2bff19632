"""The ledger held against the tables, also when what was set aside is gone because its time was past."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from forebay.lake.health import HealthRecords
from forebay.operate.accounts import Accounts, accounts
from forebay.operate.lake_view import LakeView

OLD, NEW = date(2026, 1, 5), date(2026, 5, 5)


def lake(place: Path, *, set_aside_days: tuple[date, ...]) -> Accounts:
    """Two files, one of each day; of each two records were written, one quarantined and one parked."""
    days = [datetime(day.year, day.month, day.day, 23, tzinfo=UTC) for day in (OLD, NEW)]
    ledger = {
        "outcome": ["loaded", "loaded"],
        "claimed_at": pa.array(days, pa.timestamp("us", "UTC")),
        "records": [4, 4],
        "written": [2, 2],
        "quarantined": [1, 1],
        "parked": [1, 1],
        "dropped": [0, 0],
        "tables": pa.array([[("alpha", 2)], [("alpha", 2)]], pa.map_(pa.string(), pa.int64())),
    }
    write_deltalake(place / "_forebay" / "ledger", pa.table(ledger))
    write_deltalake(place / "alpha", pa.table({"v": [1, 2, 3, 4]}))
    aside = {"day": pa.array(set_aside_days, pa.date32()), "line": pa.array([1] * len(set_aside_days), pa.int64())}
    for name in ("quarantine", "parked"):
        write_deltalake(place / "_forebay" / name, pa.table(aside))
    return accounts(LakeView(str(place)))


def expire(place: Path, until: date) -> None:
    for name in ("_forebay/quarantine", "_forebay/parked"):
        HealthRecords(str(place)).update(name, lambda was: replace(was, expired_until=until.isoformat()))


def test_all_sums_hold(tmp_path: Path) -> None:
    assert lake(tmp_path, set_aside_days=(OLD, NEW)).differences() == []


def test_a_row_that_is_missing_is_told(tmp_path: Path) -> None:
    assert lake(tmp_path, set_aside_days=(NEW,)).differences() == [
        "parked: the ledger says 2 rows, the table has 1",
        "quarantine: the ledger says 2 rows, the table has 1",
    ]


def test_a_row_whose_time_was_past_is_not_missed_and_one_still_there_is_not_too_much(tmp_path: Path) -> None:
    for name, days in (("gone", (NEW,)), ("about to go", (OLD, NEW))):
        expire(tmp_path / name, date(2026, 2, 1))
        assert lake(tmp_path / name, set_aside_days=days).differences() == []


def test_a_row_that_should_have_stayed_is_missed(tmp_path: Path) -> None:
    expire(tmp_path, date(2026, 2, 1))
    assert len(lake(tmp_path, set_aside_days=(OLD,)).differences()) == 2
