"""What happened when: batches and verbs on one time line, and who did what to a table."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from forebay.lake.layout import DERIVED_FROM
from forebay.lake.lease import hold
from forebay.operate.looking.history import record_verb
from tests.operate.command import failed, given, ran
from tests.operate.ledger import entry, write_ledger

NOW = datetime.now(UTC).replace(microsecond=0)


@pytest.fixture
def lake(tmp_path: Path) -> str:
    def of_batch(number: int, hours: float, **more: object) -> dict[str, object]:
        at = NOW - timedelta(hours=hours)
        return entry(f"in/{number}.json", at=at, batch=number, committed_at=at, day=at.date(), **more)

    write_ledger(tmp_path, of_batch(1, 50), of_batch(2, 3), of_batch(3, 1, records=5, quarantined=5))
    return str(tmp_path)


def test_batches_and_verbs_are_on_one_time_line_the_newest_first(lake: str) -> None:
    record_verb(lake, "queue redrive: sent 2 dead letters back", undo="-", now=NOW - timedelta(hours=2))
    record_verb(lake, "long ago", now=NOW - timedelta(days=9))
    told = [json.loads(line) for line in ran("history", "--lake", lake, "--json").splitlines()]
    assert [(one["kind"], one["what"]) for one in told] == [
        ("batch", "batch 3 of games: 1 file, 5 records, 5 quarantined"),
        ("verb", "queue redrive: sent 2 dead letters back"),
        ("batch", "batch 2 of games: 1 file, 0 records"),
    ]
    assert " on " in told[1]["who"]
    assert len(ran("history", "--lake", lake, "--days", "10", "--json").splitlines()) == 5
    assert len(ran("history", "--lake", lake).splitlines()) == 4


def test_a_batch_says_which_of_its_files_an_earlier_batch_had(lake: str) -> None:
    """The earlier batch no longer counts them."""
    of_batch = {"batch": 4, "committed_at": NOW, "day": NOW.date(), "at": NOW}
    again = [entry(f"in/{name}.json", tries=2, tables={"alpha": 2}, **of_batch) for name in "ab"]
    stayed = entry("in/c.json", tries=3, reason="not-replayed", detail="denied: 403", **of_batch)
    write_ledger(lake, *again, stayed, entry("in/d.json", tries=1, **of_batch))
    newest = json.loads(ran("history", "--lake", lake, "--json").splitlines()[0])
    assert newest["what"] == "batch 4 of games: 4 files (2 moved here from an earlier batch), 4 records"


def test_what_changed_about_a_table_is_told_with_the_way_back(lake: str) -> None:
    for number in range(2):
        write_deltalake(f"{lake}/alpha", pa.table({"v": [number]}), mode="append")
    DeltaTable(f"{lake}/alpha").optimize.compact()
    told = [json.loads(line) for line in ran("history", "--lake", lake, "--table", "alpha", "--json").splitlines()]
    (compacted,) = [one for one in told if "OPTIMIZE" in one["what"]]
    assert compacted["undo"] == "forebay rollback alpha --to 1"
    assert [one["what"] for one in told if one["kind"] == "table" and one != compacted] == [
        "alpha version 1: WRITE, 1 row",
        "alpha version 0: WRITE, 1 row, new columns or properties",
    ]
    DeltaTable(f"{lake}/alpha").restore(1)
    assert "alpha version 3: RESTORE  " in ran("history", "--lake", lake, "--all-tables")
    quiet = ran("history", "--lake", lake, "--all-tables")
    assert "OPTIMIZE" in quiet
    assert "alpha version 1" not in quiet
    assert "did you mean alpha?" in failed(2, "history", "--lake", lake, "--table", "alpah")


def test_a_commit_that_changes_no_row_and_no_column_has_no_way_back(lake: str) -> None:
    for number in range(2):
        write_deltalake(f"{lake}/alpha", pa.table({"v": [number]}), mode="overwrite")
    DeltaTable(f"{lake}/alpha").vacuum(0, dry_run=False, enforce_retention_duration=False)
    told = [json.loads(line) for line in ran("history", "--lake", lake, "--table", "alpha", "--json").splitlines()]
    undo = {one["undo"] for one in told if "VACUUM" in one["what"]}
    assert undo == {""}


def test_no_undo_is_told_that_a_rollback_refuses(lake: str) -> None:
    """It never goes back before an erasure, and a table that is computed from others does not go back itself."""
    for number in range(2):
        write_deltalake(f"{lake}/alpha", pa.table({"v": [number]}), mode="append")
    erased = CommitProperties(app_transactions=[Transaction("forebay/games/erase", 1)])
    DeltaTable(f"{lake}/alpha").delete("v = 0", commit_properties=erased)
    batch = CommitProperties(app_transactions=[Transaction("forebay/games/g1", 7)])
    write_deltalake(f"{lake}/alpha", pa.table({"v": [2]}), mode="append", commit_properties=batch)
    write_deltalake(f"{lake}/state", pa.table({"v": [2]}))
    DeltaTable(f"{lake}/state").alter.set_table_properties({DERIVED_FROM: "alpha"}, raise_if_not_exists=False)
    told = {}
    for table in ("alpha", "state"):
        for line in ran("history", "--lake", lake, "--table", table, "--json").splitlines():
            if (one := json.loads(line))["kind"] == "table":
                told[one["what"].partition(":")[0]] = one["undo"]
    assert told.pop("alpha version 3") == "forebay rollback alpha --to 2"
    assert (len(told), set(told.values())) == (5, {""})


def test_rows_of_a_writer_that_counts_none_are_not_told_as_none(lake: str) -> None:
    write_deltalake(f"{lake}/alpha", pa.table({"v": [1]}))
    newest = max(Path(lake, "alpha", "_delta_log").glob("*.json"))
    added = {"path": "x.parquet", "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True}
    for number, stats in enumerate(('{"minValues": {}}', '{"numRecords": null}', None), int(newest.stem) + 1):
        actions = [{"commitInfo": {"operation": "WRITE"}}, {"add": {**added, "stats": stats}}]
        newest.with_name(f"{number:020}.json").write_text("\n".join(map(json.dumps, actions)))
        told = ran("history", "--lake", lake, "--table", "alpha", "--json").splitlines()
        assert f"alpha version {number}: WRITE" in [json.loads(one)["what"] for one in told]


def test_a_verb_leaves_its_record(s3: str) -> None:
    place = "s3://studio-lake/history"
    options = {
        "aws_endpoint_url": s3,
        "aws_allow_http": "true",
        "aws_access_key_id": "AK",
        "aws_secret_access_key": "SK",
    }
    write_ledger(place, storage_options=options)
    gone = hold(f"{place}/_forebay/checkpoints/ingest", wait_s=0)
    failed(0, "lease", "break", "--lake", place, "--yes")
    told = json.loads(ran("history", "--lake", place, "--json"))
    assert told["what"].startswith("lease break: ended the lease of process ")
    assert told["undo"] == "start that job again"
    gone._gone.set()  # type: ignore[attr-defined]


def test_a_record_that_cannot_be_kept_does_not_undo_what_was_done(lake: str) -> None:
    from forebay.cli.looking.history import leave_record

    Path(lake, "_forebay", "verbs").write_text("in the way")
    leave_record(lake, "something")
    assert given(("history", "--lake", lake), "")[0] == 0
