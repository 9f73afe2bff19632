"""Which versions of a batch's keys the ledger has: few data files are read without Spark, and say the same."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger import data_files
from forebay.ledger.data_files import rows_of_keys
from forebay.ledger.entry import COLUMNS, key_hash
from forebay.ledger.ledger import Ledger
from tests.operate.ledger import AT, entry, schema_of, write_ledger

LATER = AT + timedelta(days=3)
A, B = (LandedFile("landing", f"in/{name}.json", 10, "e9") for name in "ab")


@pytest.fixture
def rows(tmp_path: Path) -> list[dict[str, Any]]:
    """Two versions of a key, days apart; one of another; and rows of others, in the same and in other files."""
    told = [
        entry("in/a.json", tables={"alpha": 2}),
        entry("in/a.json", at=LATER, etag="e2"),
        entry("in/b.json", service=None, event_time=None),
    ]
    write_ledger(tmp_path, told[0], entry("in/other.json"), entry("in/a.json", service="others", etag="e3"))
    write_ledger(tmp_path, *told[1:])
    return told


def ids(rows: list[dict[str, Any]] | None) -> set[str]:
    assert rows is not None
    return {row["file_id"] for row in rows}


def as_read(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "tables": dict(row["tables"])}


def test_the_rows_of_these_keys_are_found_on_their_days_and_for_their_services(
    tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    ledger, asked = open_objects(str(tmp_path / "_forebay" / "ledger")), {key_hash(A), key_hash(B)}
    days = {AT.date(), LATER.date()}
    assert ids(rows_of_keys(ledger, read_snapshot(ledger).files, days, asked, ["games"])) == ids(rows)
    assert ids(rows_of_keys(ledger, read_snapshot(ledger).files, {LATER.date()}, asked, ["games"])) == ids(rows[1:2])
    assert ids(rows_of_keys(ledger, read_snapshot(ledger).files, days, {key_hash(B)}, ["games"])) == ids(rows[2:])
    assert ids(rows_of_keys(ledger, read_snapshot(ledger).files, days, asked, ["elsewhere"])) == ids(rows[2:])
    found = rows_of_keys(ledger, read_snapshot(ledger).files, days, asked, ["games"]) or []
    assert {row["file_id"]: row for row in found} == {row["file_id"]: as_read(row) for row in rows}


def test_a_change_of_the_ledger_leaves_rows_that_are_found(tmp_path: Path) -> None:
    """delta-rs writes the texts of changed rows as views."""
    write_ledger(tmp_path, entry("in/a.json"), entry("in/b.json"))
    DeltaTable(tmp_path / "_forebay" / "ledger").update({"outcome": "'forgotten'"}, predicate="key = 'in/a.json'")
    ledger = open_objects(str(tmp_path / "_forebay" / "ledger"))
    (row,) = rows_of_keys(ledger, read_snapshot(ledger).files, {AT.date()}, {key_hash(A)}, ["games"]) or []
    assert row["outcome"] == "forgotten"


def test_a_driver_does_not_read_many_files_or_bytes_of_the_ledger_alone(
    tmp_path: Path, rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, asked, days = open_objects(str(tmp_path / "_forebay" / "ledger")), {key_hash(A)}, {AT.date(), LATER.date()}
    bytes_ = sum(DeltaTable(tmp_path / "_forebay" / "ledger").get_add_actions()["size_bytes"].to_pylist())
    for limit, most in (("FEW_FILES", 3), ("FEW_BYTES", bytes_)):
        with monkeypatch.context() as patched:
            patched.setattr(data_files, limit, most)
            assert ids(rows_of_keys(ledger, read_snapshot(ledger).files, days, asked, ["games"])) == ids(rows[:2])
            patched.setattr(data_files, limit, most - 1)
            assert rows_of_keys(ledger, read_snapshot(ledger).files, days, asked, ["games"]) is None


def test_a_ledger_that_had_fewer_columns_has_none_in_the_others(tmp_path: Path) -> None:
    row = entry("in/a.json")
    old = pa.Table.from_pylist([row], schema_of(COLUMNS)).drop_columns(["content_hash", "tries"])
    write_deltalake(tmp_path / "_forebay" / "ledger", old, partition_by=["day"])
    ledger = Ledger(None, str(tmp_path), "games")  # type: ignore[arg-type]
    (earlier,) = ledger._versions_of([A])["landing", A.key]
    assert earlier.row == as_read(row)


def test_spark_finds_the_same_versions(
    tmp_path: Path, rows: list[dict[str, Any]], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(spark, str(tmp_path), "games")
    here = ledger._versions_of([A, B])
    monkeypatch.setattr(data_files, "FEW_FILES", 0)
    there = ledger._versions_of([A, B])

    def sorted_(found: Any) -> Any:
        return {key: sorted(some, key=lambda seen: seen.file.file_id) for key, some in found.items()}

    assert sorted_(here) == sorted_(there)
    assert {key: len(some) for key, some in here.items()} == {("landing", A.key): 2, ("landing", B.key): 1}


def test_spark_reads_a_ledger_in_which_deletion_vectors_hide_rows(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    ledger = open_objects(str(tmp_path / "_forebay" / "ledger"))
    first, *others = read_snapshot(ledger).files
    hiding = [first._replace(deleted_rows=1), *others]
    assert rows_of_keys(ledger, hiding, {AT.date(), LATER.date()}, {key_hash(A)}, ["games"]) is None


def test_only_data_files_of_the_asked_days_are_opened(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    ledger = open_objects(str(tmp_path / "_forebay" / "ledger"))

    def read_since(day: date | None) -> int:
        return sum(parquet.metadata.num_rows for parquet in data_files.data_files(ledger, since=day))

    assert [read_since(day) for day in (None, AT.date(), LATER.date(), LATER.date() + timedelta(days=1))] == [
        5,
        5,
        1,
        0,
    ]
