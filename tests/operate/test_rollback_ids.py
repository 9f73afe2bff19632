"""The ids of `dedupe` after a rollback to a version right after which something else was committed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from forebay.declaration.kept.in_force import keep_in_force
from forebay.declaration.loading import parse_service
from forebay.errors import Halt
from forebay.landed_file import LandedFile
from forebay.operate.changing.rollback import plan_rollback, roll_back
from forebay.operate.changing.rollback_ledger import Reading, Rollback, TableBack
from forebay.operate.lake_view import LakeView
from tests.operate.command import ran
from tests.operate.ledger import entry, write_ledger

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()
IDS_TEXTS = [(name, pa.string()) for name in ("service", "generation", "file_id", "table")]
IDS_SCHEMA = pa.schema([("day", pa.date32()), ("id", pa.binary()), ("batch", pa.int64()), *IDS_TEXTS])

DEDUPE = 'dedupe = { by = ["event_id"], days = 3 }\ncolumns = [{ name = "event_id" }]\n'


def file_id(key: str) -> str:
    return LandedFile("landing", key, 100, "e1").file_id


def commit_batch(place: str, rows: pa.Table, batch: int, service: str = "games", **more: Any) -> None:
    """Also of a service whose files are not in it."""
    txn = CommitProperties(app_transactions=[Transaction(f"forebay/{service}/g1", batch)])
    write_deltalake(place, rows, **{"mode": "append", "commit_properties": txn, **more})
    time.sleep(0.05)


def ids_by(batch: int, ids: list[bytes], key: str = "in/e.json", service: str = "games") -> pa.Table:
    shared = {"day": date(2026, 11, 21), "service": service, "generation": "g1", "batch": batch, "table": "gamma"}
    return pa.Table.from_pylist([{**shared, "id": one, "file_id": file_id(key)} for one in ids], IDS_SCHEMA)


def rows_by(n: int, key: str = "in/e.json") -> pa.Table:
    return pa.table({"_file_id": [file_id(key)] * n, "n": list(range(n))})


def lake_of_one_batch(place: Path) -> tuple[str, str, str]:
    """And the addresses of its table and of its ids."""
    lake = str(place)
    table, ids = f"{lake}/gamma", f"{lake}/_forebay/ids"
    commit_batch(table, rows_by(1), 1)
    commit_batch(ids, ids_by(1, [b"1" * 16]), 1, partition_by=["day"])
    return lake, table, ids


def compaction(lake: str) -> None:
    assert DeltaTable(f"{lake}/gamma").optimize.compact()["numFilesAdded"]


def batch_of_another_service(lake: str) -> None:
    commit_batch(f"{lake}/gamma", rows_by(1, "in/f.json"), 7, "shops")
    commit_batch(f"{lake}/_forebay/ids", ids_by(7, [b"7" * 16], "in/f.json", "shops"), 7, "shops", partition_by=["day"])


@pytest.mark.parametrize("between", [compaction, batch_of_another_service])
def test_returning_records_are_known_whatever_came_between_the_rows_and_the_ids_of_their_batch(
    between: Callable[[str], None], tmp_path: Path
) -> None:
    """A batch commits the rows of the table before the ids."""
    lake, table, ids = lake_of_one_batch(tmp_path)
    commit_batch(table, rows_by(2), 2)
    between(lake)
    commit_batch(ids, ids_by(2, [b"2" * 16, b"3" * 16]), 2, partition_by=["day"])
    commit_batch(table, rows_by(1), 4)
    commit_batch(ids, ids_by(4, [b"4" * 16]), 4, partition_by=["day"])
    write_ledger(lake, entry("in/e.json", tables={"gamma": 4}))
    if between is batch_of_another_service:
        write_ledger(lake, entry("in/f.json", service="shops", tables={"gamma": 1}))
    ran("rollback", "gamma", "--to", "0", "--lake", lake, "--yes")
    assert ids_of(lake) == [b"1" * 16]
    ran("rollback", "gamma", "--to", "1", "--lake", lake, "--yes")
    assert ids_of(lake) == [b"1" * 16, b"2" * 16, b"3" * 16]


def test_returning_records_are_known_where_later_ids_have_the_time_of_the_commit_that_followed(tmp_path: Path) -> None:
    """S3's times are whole seconds."""
    lake, table, ids = lake_of_one_batch(tmp_path)
    DeltaTable(table).delete()
    DeltaTable(ids).delete()
    for at, second in ((table, 1), (ids, 1)):
        touched = Path(at) / "_delta_log" / f"{second:020}.json"
        os.utime(touched, (NOON, NOON))
    for at in (table, ids):
        os.utime(Path(at) / "_delta_log" / f"{0:020}.json", (NOON - 1, NOON - 1))
    write_ledger(lake, entry("in/e.json", outcome="superseded", records=1, dropped=1))
    ran("rollback", "gamma", "--to", "0", "--lake", lake, "--yes")
    assert ids_of(lake) == [b"1" * 16]


def test_records_are_unknown_where_a_table_goes_back_to_between_the_two_commits_of_a_replay(tmp_path: Path) -> None:
    """One commit removes the rows of the file, the next one adds them again, and the ids follow both."""
    lake, table, ids = lake_of_one_batch(tmp_path)
    DeltaTable(table).delete()
    commit_batch(table, rows_by(1), 2)
    commit_batch(ids, ids_by(2, [b"1" * 16]), 2, mode="overwrite")
    write_ledger(lake, entry("in/e.json", tables={"gamma": 1}))
    ran("rollback", "gamma", "--to", "1", "--lake", lake, "--yes")
    assert ids_of(lake) == []


def test_records_are_unknown_where_the_log_of_the_ids_was_cleaned_up_to_a_later_version(tmp_path: Path) -> None:
    """The cleanup leaves commits that no checkpoint comes before. The tables are back by then, so the rollback must end."""
    lake = str(tmp_path)
    table, ids = f"{lake}/gamma", f"{lake}/_forebay/ids"
    for batch in range(1, 4):
        commit_batch(table, rows_by(1), batch)
        commit_batch(ids, ids_by(batch, [bytes([batch]) * 16]), batch, partition_by=["day"])
    DeltaTable(table).delete()
    DeltaTable(ids).delete()
    DeltaTable(ids).create_checkpoint()
    (Path(ids) / "_delta_log" / f"{0:020}.json").unlink()
    write_ledger(lake, entry("in/e.json", outcome="superseded", records=3, dropped=3))
    ran("rollback", "gamma", "--to", "1", "--lake", lake, "--yes")
    assert ids_of(lake) == []


def ids_of(lake: str) -> list[bytes]:
    return sorted(DeltaTable(f"{lake}/_forebay/ids").to_pyarrow_table()["id"].to_pylist())


def superseded(lake: str, *, declared: str = DEDUPE) -> LakeView:
    """A version of which gamma has had rows until a later one came, and delta still has some."""
    keep_in_force(lake, parse_service({"service.toml": f'name = "games"\n[[tables]]\nname = "{{game}}"\n{declared}'}))
    commit_batch(f"{lake}/delta", rows_by(1).slice(1), 0)
    for table in ("gamma", "delta"):
        commit_batch(f"{lake}/{table}", rows_by(1), 1)
    commit_batch(f"{lake}/_forebay/ids", ids_by(1, [b"1" * 16]), 1, partition_by=["day"])
    for table in ("gamma", "_forebay/ids"):
        DeltaTable(f"{lake}/{table}").delete()
    later = {"outcome": "superseded", "reason": "overwritten", "superseded_by": "later", "dropped": 1, "records": 2}
    write_ledger(lake, entry("in/e.json", tables={"delta": 1}, **later))
    return LakeView(lake)


def test_a_version_whose_rows_in_another_table_have_lost_their_ids_is_not_in_force_again(tmp_path: Path) -> None:
    view = superseded(str(tmp_path))
    with pytest.raises(Halt, match=r"in/e\.json: .* table delta still has rows .* Nothing was done"):
        plan_rollback(view, ["gamma"], 0, replay=False)


def test_without_dedupe_no_id_is_missed(tmp_path: Path) -> None:
    (gamma,) = plan_rollback(superseded(str(tmp_path), declared=""), ["gamma"], 0, replay=False).tables
    assert gamma.coming == 1


def test_rows_that_come_back_of_a_version_that_stays_superseded_have_no_ids(tmp_path: Path) -> None:
    """They leave again when a job starts."""
    view = superseded(str(tmp_path))
    tables = (
        TableBack.of("gamma", 1, 0, {Reading(file_id("in/e.json"), None): 1}),
        TableBack.of("delta", 1, 0, {Reading(file_id("in/e.json"), None): -1}),
    )
    roll_back(view, Rollback("n", tables))
    (row,) = DeltaTable(tmp_path / "_forebay" / "ledger").to_pyarrow_table().to_pylist()
    assert (row["outcome"], dict(row["tables"])) == ("superseded", {"gamma": 1})
    assert DeltaTable(tmp_path / "_forebay" / "ids").to_pyarrow_table().num_rows == 0
