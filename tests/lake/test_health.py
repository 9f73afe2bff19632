"""The tables' health objects: kept by several, and never a reason to stop."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from forebay.batch.events import BatchCommitted, OwnRowsAppended, RowsAppended
from forebay.events import metrics_of
from forebay.jobs.arrivals import Arrivals
from forebay.lake.health import SMALL_BELOW_BYTES, Health, HealthMeasured, HealthRecords, seen_in
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import open_objects
from forebay.operate.looking.health import health_of
from forebay.table.events import ColumnsLeftOut
from tests.operate.command import ran

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = (("day", "2026-05-01"), ("game", None))


@pytest.fixture
def records(tmp_path: Path) -> HealthRecords:
    return HealthRecords(str(tmp_path))


def test_what_is_written_is_read(records: HealthRecords) -> None:
    health = Health(table="alpha", measured_at=NOW, files=3, newest_at=NOW).with_ordered([DAY], NOW)
    assert records.update("alpha", lambda _: health) == health
    assert records.of("alpha") == health
    assert records.of("alpha").ordered_partitions() == {DAY: NOW}
    assert [one.table for one in records.all()] == ["alpha"]


def test_an_object_that_is_not_ours_is_written_anew(records: HealthRecords, tmp_path: Path) -> None:
    for text in ("{", "[]", '{"files": 1}', '{"table": "alpha", "newest_at": "yesterday"}'):
        (tmp_path / "_forebay" / "health").mkdir(parents=True, exist_ok=True)
        (tmp_path / "_forebay" / "health" / "alpha.json").write_text(text)
        assert records.update("alpha", lambda was: was.with_arrivals(2, 10, NOW)).waiting == 2


def test_an_object_of_a_later_version_of_ours_is_understood() -> None:
    text = Health(table="alpha", files=3).as_json().replace('"files"', '"new_field": 1, "files"')
    assert Health.from_json(text) == Health(table="alpha", files=3)


def test_two_who_write_at_once_both_count(records: HealthRecords) -> None:
    met = []

    def change(was: Health) -> Health:
        if not met:
            met.append(records.update("alpha", lambda was: was.with_arrivals(1, 10, NOW)))
        return was.with_arrivals(2, 10, NOW)

    assert records.update("alpha", change).waiting == 3


def test_what_ingest_appends_is_counted_and_written_now_and_then(records: HealthRecords) -> None:
    clock = [NOW]
    arrivals = Arrivals(records, flush_every_s=60, clock=lambda: clock[0])
    for batch in range(3):
        arrivals(appended("alpha", batch, files=2, size=1000))
        arrivals(appended("large", batch, files=1, size=SMALL_BELOW_BYTES))
        arrivals(OwnRowsAppended(service="s", table="_forebay/ids", batch=batch, rows=9, files=1, bytes=50))
        arrivals(committed(batch))
    assert list(records.all()) == []
    clock[0] += timedelta(seconds=60)
    arrivals(committed(3))
    arrivals.close()
    found = {one.table: (one.files, one.small_files, one.waiting, one.bytes) for one in records.all()}
    assert found == {
        "alpha": (6, 6, 6, 3000),
        "large": (3, 0, 0, 3 * SMALL_BELOW_BYTES),
        "_forebay/ids": (3, 3, 3, 150),
    }
    assert records.of("alpha").newest_at == NOW, "when it came, and not when it was written"


def test_fields_that_got_no_column_are_told_until_the_table_is_settled(tmp_path: Path, records: HealthRecords) -> None:
    write_deltalake(tmp_path / "alpha", pa.table({"v": [1]}))
    arrivals = Arrivals(records, clock=lambda: NOW)
    arrivals(ColumnsLeftOut(table="alpha", such_as="a.b", columns=12))
    arrivals.close()
    arrivals = Arrivals(records, clock=lambda: NOW)
    arrivals(appended("alpha", 1, files=1, size=10))
    arrivals.close()
    said = ran("tables", "health", "--lake", str(tmp_path))
    assert "alpha: 12 fields got no column, such as a.b" in said
    assert "forebay schema settle alpha" in said
    records.update("alpha", lambda health: replace(health, left_out=0))
    assert "got no column" not in ran("tables", "health", "--lake", str(tmp_path))


def appended(table: str, batch: int, *, files: int, size: int) -> RowsAppended:
    return RowsAppended(service="s", table=table, batch=batch, rows=1, files=files, bytes=size, version=batch)


def committed(batch: int) -> BatchCommitted:
    seconds = dict.fromkeys(("claim_seconds", "read_seconds", "write_seconds", "ledger_seconds", "seconds"), 0.0)
    counts = {"files": 1, "bytes": 1, "records": 1, "written": 1, "quarantined": 0, "parked": 0, "tables": 1}
    return BatchCommitted(service="s", batch=batch, **counts, **seconds)


def test_a_table_is_measured_by_its_log(tmp_path: Path, records: HealthRecords) -> None:
    for value in range(4):
        write_deltalake(tmp_path / "alpha", pa.table({"v": [value], "day": ["a"]}), mode="append", partition_by=["day"])
    snapshot = read_snapshot(open_objects(str(tmp_path / "alpha")))
    before = Health(table="alpha", vacuumed_at=NOW).with_ordered([DAY, (("day", "a"),)], NOW)
    health = seen_in(snapshot, before, now=NOW)
    assert (health.files, health.small_files, health.small_share, health.since_checkpoint) == (4, 4, 1.0, 4)
    assert health.bytes == sum(file.bytes for file in snapshot.files)
    assert (health.vacuumed_at, set(health.ordered_partitions())) == (NOW, {(("day", "a"),)})
    told = HealthMeasured.of(health, "games")
    assert {metric.name: metric.value for metric in metrics_of(told)} == {
        "HealthMeasuredFiles": 4,
        "HealthMeasuredSmallSharePercent": 100,
        "HealthMeasuredSinceCheckpoint": 4,
    }
    records.update("alpha", lambda _: Health(table="alpha", waiting=5, compacted_at=NOW))
    found, unreadable, _ = health_of(str(tmp_path), ["alpha", "gone"])
    assert [(one.table, one.files, one.waiting, one.compacted_at, one.log_objects) for one in found] == [
        ("alpha", 4, 5, NOW, 4)
    ]
    assert [(bad.name, bad.reason) for bad in unreadable] == [("gone", "not-found")]
