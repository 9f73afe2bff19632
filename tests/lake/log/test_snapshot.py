"""The log's reader, held against delta-rs on logs that delta-rs wrote, and against logs by hand for what it does not write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from forebay.lake.log.commit import effect_of
from forebay.lake.log.listing import BrokenLog, NoTable, UnsupportedTable
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import open_objects

DEEDS = st.lists(st.sampled_from(["append", "append", "delete", "compact", "checkpoint", "overwrite"]), max_size=8)


@given(deeds=DEEDS)
def test_it_sees_what_delta_rs_sees(deeds: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("table")
    write_deltalake(place, rows(0), partition_by=["day"])
    for number, deed in enumerate(deeds):
        table = DeltaTable(place)
        if deed in ("append", "overwrite"):
            write_deltalake(place, rows(number), mode=deed)  # type: ignore[arg-type]
        elif deed == "delete":
            table.delete(f"v = {number - 1}")
        elif deed == "compact":
            table.optimize.compact()
        else:
            table.create_checkpoint()
    snapshot = read_snapshot(open_objects(str(place)))
    theirs = DeltaTable(place)
    added = pa.table(theirs.get_add_actions(flatten=True))
    wanted = sorted(zip(*(added[n].to_pylist() for n in ("path", "size_bytes", "num_records")), strict=True))
    assert snapshot.version == theirs.version()
    assert sorted((f.path, f.bytes, f.rows) for f in snapshot.files) == wanted
    assert {f.partition[0][1] for f in snapshot.files} <= {"a b", "2", None}
    for version in range(theirs.version() + 1):
        theirs.load_as_version(version)
        then = read_snapshot(open_objects(str(place)), up_to=version)
        wanted = sorted(pa.table(theirs.get_add_actions(flatten=True))["path"].to_pylist())
        assert (then.version, sorted(f.path for f in then.files)) == (version, wanted)


def test_the_newest_transaction_of_each_application_is_known_behind_a_checkpoint_too(tmp_path: Path) -> None:
    for app, number in (("a", 1), ("b", 7), ("a", 2)):
        properties = CommitProperties(app_transactions=[Transaction(app, number)])
        write_deltalake(tmp_path, rows(0), mode="append", commit_properties=properties)
    assert read_snapshot(open_objects(str(tmp_path))).transactions == {"a": 2, "b": 7}
    DeltaTable(tmp_path).create_checkpoint()
    write_deltalake(tmp_path, rows(0), mode="append")
    assert read_snapshot(open_objects(str(tmp_path))).transactions == {"a": 2, "b": 7}
    assert read_snapshot(open_objects(str(tmp_path)), up_to=1).transactions == {"a": 1, "b": 7}


def rows(value: int) -> pa.Table:
    return pa.table({"v": [value, value + 1, value], "day": ["a b", "2", None]})


def test_a_checkpoint_in_parts_counts_when_all_parts_are_there(tmp_path: Path) -> None:
    for value in range(3):
        write_deltalake(tmp_path, rows(value), mode="append")
    DeltaTable(tmp_path).create_checkpoint()
    log = tmp_path / "_delta_log"
    whole = pq.read_table(log / f"{2:020}.checkpoint.parquet")
    parts = [log / f"{2:020}.checkpoint.{n:010}.{2:010}.parquet" for n in (1, 2)]
    pq.write_table(whole.slice(0, 2), parts[0])
    pq.write_table(whole.slice(2), parts[1])
    (log / f"{2:020}.checkpoint.parquet").unlink()
    (log / f"{0:020}.json").unlink()
    assert len(read_snapshot(open_objects(str(tmp_path))).files) == 3
    parts[1].unlink()
    with pytest.raises(BrokenLog, match="version 0 is missing"):
        read_snapshot(open_objects(str(tmp_path)))


@pytest.mark.parametrize("hint", ["", "{", '{"version": 7}', "[]"])
def test_a_hint_that_leads_nowhere_is_no_harm(tmp_path: Path, hint: str) -> None:
    write_deltalake(tmp_path, rows(1))
    (tmp_path / "_delta_log" / "_last_checkpoint").write_text(hint)
    assert read_snapshot(open_objects(str(tmp_path))).version == 0


def test_statistics_may_stand_in_a_column_of_their_own(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(1))
    DeltaTable(tmp_path).create_checkpoint()
    log = tmp_path / "_delta_log"
    whole = pq.read_table(log / f"{0:020}.checkpoint.parquet").to_pylist()
    for action in whole:
        if action["add"]:
            action["add"] |= {"stats": None, "stats_parsed": {"numRecords": 41}, "tags": None}
    adds = [{"add": {k: v for k, v in a["add"].items() if k != "tags"}} if a["add"] else {"add": None} for a in whole]
    kinds = {n: [a[n] for a in whole] for n in ("protocol", "metaData")}
    old = pq.read_schema(log / f"{0:020}.checkpoint.parquet")
    add_type = pa.struct(
        [f for f in old.field("add").type if f.name in ("path", "partitionValues", "size", "modificationTime")]
        + [pa.field("stats", pa.string()), pa.field("stats_parsed", pa.struct([("numRecords", pa.int64())]))]
    )
    columns = {"add": pa.array([keep(a["add"], add_type) for a in adds], add_type)}
    columns |= {n: pa.array(kinds[n], old.field(n).type) for n in kinds}
    pq.write_table(pa.table(columns), log / f"{0:020}.checkpoint.parquet")
    assert {f.rows for f in read_snapshot(open_objects(str(tmp_path))).files} == {41}


def keep(action: dict[str, Any] | None, type_: Any) -> dict[str, Any] | None:
    return action and {f.name: action.get(f.name) for f in type_}


def test_a_checkpoint_reads_like_its_commits_wherever_the_statistics_say_the_rows(tmp_path: Path) -> None:
    several = pa.table({"v": [1, 2, 3], "day": ["1", "2", None], "game": ["a", "", "b"]})
    write_deltalake(tmp_path, several, partition_by=["game", "day"])
    by_commits = read_snapshot(open_objects(str(tmp_path))).files
    assert {f.partition for f in by_commits} == {
        (("game", "a"), ("day", "1")),
        (("game", None), ("day", "2")),
        (("game", "b"), ("day", None)),
    }
    DeltaTable(tmp_path).create_checkpoint()
    assert sorted(read_snapshot(open_objects(str(tmp_path))).files) == sorted(by_commits)
    path = tmp_path / "_delta_log" / f"{0:020}.checkpoint.parquet"
    whole = pq.read_table(path)
    said = iter(['{"minValues":{"v":1},"numRecords": 5}', None, '{ "numRecords" : 7 }'])
    actions = [{**row, "add": row["add"] and {**row["add"], "stats": next(said)}} for row in whole.to_pylist()]
    pq.write_table(pa.Table.from_pylist(actions, whole.schema), path)
    assert {f.rows for f in read_snapshot(open_objects(str(tmp_path))).files} == {5, None, 7}


def test_what_it_cannot_read_it_refuses_by_name(tmp_path: Path) -> None:
    with pytest.raises(NoTable):
        read_snapshot(open_objects(str(tmp_path / "nowhere")))
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["telepathy"], "writerFeatures": []}
    metadata = {"schemaString": '{"type": "struct", "fields": []}', "partitionColumns": [], "configuration": {}}
    lines = [{"protocol": protocol}, {"metaData": metadata}]
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(UnsupportedTable, match="needs telepathy"):
        read_snapshot(open_objects(str(tmp_path / "t")))
    (log / f"{0:020}.json").rename(log / f"{5:020}.json")
    (log / f"{4:020}.checkpoint.0b5c0b5c-0b5c-0b5c-0b5c-0b5c0b5c0b5c.parquet").write_bytes(b"")
    with pytest.raises(UnsupportedTable, match="V2 checkpoints"):
        read_snapshot(open_objects(str(tmp_path / "t")))


def test_a_commit_says_how_many_rows_came_and_went(tmp_path: Path) -> None:
    write_deltalake(tmp_path, rows(1))
    write_deltalake(tmp_path, rows(2), mode="overwrite")
    effect = effect_of((tmp_path / "_delta_log" / f"{1:020}.json").read_bytes())
    assert (effect.files_added, effect.files_removed, effect.rows_added, effect.data_change) == (1, 1, 3, True)
