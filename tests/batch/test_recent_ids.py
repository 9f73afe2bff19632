"""The ids that a driver keeps of the last days: a duplicate is never overlooked, and each file is read once. Without Spark."""

from __future__ import annotations

from datetime import date, timedelta
from hashlib import md5
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from forebay.batch import recent_ids
from forebay.batch.recent_ids import RecentIds
from forebay.lake.objects import open_objects
from forebay.ledger.data_files import opened as open_file

TODAY = date(2026, 11, 22)
LONG_AGO = date(2026, 1, 1)


def id_of(name: str) -> bytes:
    return md5(name.encode()).digest()


def ids(*names: str) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array([id_of(name)], pa.binary()) for name in names], pa.binary())


def write(lake: Path, day: date, *names: str) -> None:
    table = pa.table({"day": [day] * len(names), "id": ids(*names), "file_id": list(names)})
    write_deltalake(lake, table, mode="append", partition_by=["day"])


def names_of(found: dict[bytes, set[date]] | None) -> dict[str, set[date]]:
    assert found is not None
    known = {id_of(name): name for name in "abcdefgh"}
    return {known[id_]: days for id_, days in found.items()}


def test_ids_that_came_are_found_on_their_days_whoever_wrote_them(tmp_path: Path) -> None:
    recent = RecentIds(open_objects(str(tmp_path)))
    assert recent.days_of(ids("a"), LONG_AGO) == {}
    yesterday = TODAY - timedelta(days=1)
    write(tmp_path, yesterday, "a", "b")
    write(tmp_path, TODAY, "c", "b")
    assert names_of(recent.days_of(ids("a", "b", "d", "a"), LONG_AGO)) == {"a": {yesterday}, "b": {yesterday, TODAY}}
    write(tmp_path, TODAY, "d")  # by another process
    assert names_of(recent.days_of(ids("d", "e"), LONG_AGO)) == {"d": {TODAY}}
    assert names_of(recent.days_of(ids("a", "b"), TODAY)) == {"b": {TODAY}}
    assert names_of(recent.days_of(ids("a"), LONG_AGO)) == {"a": {yesterday}}
    assert recent.days_of(pa.chunked_array([], pa.binary()), LONG_AGO) == {}


@pytest.mark.parametrize("chunks", [[], [pa.array([], pa.binary())]])
def test_a_batch_may_have_no_ids_at_all(tmp_path: Path, chunks: list[pa.Array]) -> None:
    write(tmp_path, TODAY, "a")
    assert RecentIds(open_objects(str(tmp_path))).days_of(pa.chunked_array(chunks, pa.binary()), LONG_AGO) == {}


def test_each_file_is_read_once_also_after_a_compaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = RecentIds._hashes
    monkeypatch.setattr(RecentIds, "_hashes", lambda self, file: read.append(file.path) or real(self, file))
    recent = RecentIds(open_objects(str(tmp_path)))
    for name in "abc":
        write(tmp_path, TODAY, name)
        recent.days_of(ids("h"), LONG_AGO)
        recent.days_of(ids("h"), LONG_AGO)
    assert len(read) == 3
    DeltaTable(tmp_path).optimize.compact()
    assert names_of(recent.days_of(ids("a", "c", "h"), LONG_AGO)) == {"a": {TODAY}, "c": {TODAY}}
    assert len(read) == len(set(read)) == 4


def test_more_ids_than_may_be_kept_are_not_kept(tmp_path: Path) -> None:
    write(tmp_path, TODAY, "a", "b", "c")
    recent = RecentIds(open_objects(str(tmp_path)), most=2)
    assert recent.days_of(ids("a"), LONG_AGO) is None
    assert names_of(recent.days_of(ids("a"), TODAY + timedelta(days=1))) == {}


def test_ids_that_share_their_first_bytes_are_only_a_hint(tmp_path: Path) -> None:
    """The answer may name too many, never too few."""
    write(tmp_path, TODAY, "a")
    almost: Any = pa.chunked_array([pa.array([id_of("a")[:8] + b"otherone"], pa.binary())])
    assert set(RecentIds(open_objects(str(tmp_path))).days_of(almost, LONG_AGO) or {}) == {id_of("a")[:8] + b"otherone"}
    assert recent_ids.MOST * 8 <= 2_000_000_000


def test_the_first_day_of_the_window_is_in_it_for_a_driver_that_begins_and_for_one_that_forgets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    yesterday = TODAY - timedelta(days=1)
    write(tmp_path, yesterday, "a")
    write(tmp_path, TODAY, "b")
    ids_of = open_objects(str(tmp_path))
    assert names_of(RecentIds(ids_of).days_of(ids("a", "b"), TODAY)) == {"b": {TODAY}}
    opened: list[str] = []
    monkeypatch.setattr(recent_ids, "opened", lambda ids, file: opened.append(file.path) or open_file(ids, file))
    recent = RecentIds(ids_of)
    for since in (yesterday, TODAY, TODAY):
        assert "b" in names_of(recent.days_of(ids("a", "b"), since))
    assert len(opened) == 2, "each file is read once"
