"""Real Delta logs, written by delta-rs or by hand; no Spark."""

from __future__ import annotations

import json
import struct
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from forebay.lake.log.live_file import LiveFile
from forebay.upkeep.compaction.live_files import TableState, Unreadable, read_table, read_tables

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def rows(*values: int) -> pa.Table:
    return pa.table({"v": list(values)})


def read(place: Path) -> TableState:
    state = read_table("t", str(place))
    assert isinstance(state, TableState), state
    return state


def test_only_the_files_of_the_newest_version_live(tmp_path: Path) -> None:
    for value in range(4):
        write_deltalake(tmp_path, rows(value), mode="append")
    DeltaTable(tmp_path).optimize.compact()
    write_deltalake(tmp_path, rows(5, 6), mode="append")
    state = read(tmp_path)
    assert (state.name, state.version, state.clustered) == ("t", 5, False)
    assert sorted(file.rows or 0 for file in state.files) == [2, 4]
    for file in state.files:
        on_disk = (tmp_path / file.path).stat()
        assert file.bytes == on_disk.st_size
        assert abs(file.modified.timestamp() - on_disk.st_mtime) < 60
        assert (file.partition, file.deleted_rows) == ((), 0)


def test_partitions_carry_their_values_as_text_in_the_order_of_the_table(tmp_path: Path) -> None:
    moment = datetime(2026, 5, 1, 12, tzinfo=UTC)
    written = pa.table(
        {
            "v": [1, 2, 3],
            "day": [date(2026, 5, 1), date(2026, 5, 2), None],
            "game": ["a b", "x/ü%", "z"],
            "n": [1, 2, 3],
            "ok": [True, False, None],
            "at": pa.array([moment, moment, None], pa.timestamp("us", "UTC")),
        }
    )
    write_deltalake(tmp_path, written, partition_by=["game", "day", "n", "ok", "at"])
    assert sorted(tuple(value for _, value in file.partition) for file in read(tmp_path).files if file.partition) == [
        ("a b", "2026-05-01", "1", "true", "2026-05-01 12:00:00.000000"),
        ("x/ü%", "2026-05-02", "2", "false", "2026-05-01 12:00:00.000000"),
        ("z", None, "3", None, None),
    ]
    assert {tuple(name for name, _ in file.partition) for file in read(tmp_path).files} == {
        ("game", "day", "n", "ok", "at")
    }


def test_deleted_rows_are_counted_and_column_names_are_the_readable_ones(tmp_path: Path) -> None:
    log(tmp_path, add("a.parquet", deleted=[1, 3, 8]), add("b.parquet"), add("c.parquet", stats=False))
    found = {file.path: (file.partition, file.rows, file.deleted_rows) for file in read(tmp_path).files}
    day = (("day", "2026-05-01"),)
    assert found == {"a.parquet": (day, 10, 3), "b.parquet": (day, 10, 0), "c.parquet": (day, None, 0)}


def test_a_clustered_table_is_known_by_its_features(tmp_path: Path) -> None:
    log(tmp_path, add("a.parquet"), features=["clustering", "domainMetadata"])
    assert read(tmp_path).clustered


def test_what_stays_of_a_file_whose_rows_are_deleted() -> None:
    now = datetime.now(UTC)
    quarter, unknown = LiveFile("a", (), 1000, 100, now, 25), LiveFile("b", (), 1000, None, now, 1)
    assert (quarter.deleted_share, quarter.live_bytes) == (0.25, 750)
    assert (unknown.deleted_share, unknown.live_bytes) == (1.0, 1000)


def test_a_table_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "good", rows(1))
    log(tmp_path / "broken", add("a.parquet"))
    (tmp_path / "broken" / "_delta_log" / f"{1:020}.json").write_text('{"add": {"path"')
    log(tmp_path / "future", add("a.parquet"), features=["telepathy"])
    log(tmp_path / "gap", add("a.parquet"))
    (tmp_path / "gap" / "_delta_log" / f"{2:020}.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    names = ["good", "broken", "future", "gap", "empty", "absent", "good again"]
    places = {name: str(tmp_path / name.split()[0]) for name in names}
    answers = list(read_tables(places, at_once=2))
    assert [answer.name for answer in answers] == names
    reasons = {answer.name: answer.reason for answer in answers if isinstance(answer, Unreadable)}
    assert reasons == {
        "broken": "unreadable-log",
        "future": "unsupported",
        "gap": "unreadable-log",
        "empty": "not-found",
        "absent": "not-found",
    }
    assert all(str(tmp_path) in answer.detail for answer in answers if isinstance(answer, Unreadable))


# --- logs by hand: delta-rs writes neither deletion vectors nor column mapping ---


def log(place: Path, *adds: dict[str, Any], features: list[str] | None = None) -> None:
    mapped = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-7f"}
    schema = {"type": "struct", "fields": [field("day", "date", mapped), field("v", "long", mapped_as(2, "col-8a"))]}
    reading, writing = ["deletionVectors", "columnMapping"], features or []
    actions: list[dict[str, Any]] = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": [*reading, *(["telepathy"] if "telepathy" in writing else [])],
                "writerFeatures": [*reading, *writing],
            }
        },
        {
            "metaData": {
                "id": "00000000-0000-0000-0000-000000000001",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(schema),
                "partitionColumns": ["day"],
                "createdTime": 1,
                "configuration": {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"},
            }
        },
        *({"add": add} for add in adds),
    ]
    (place / "_delta_log").mkdir(parents=True)
    (place / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))


def field(name: str, type_: str, metadata: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata}


def mapped_as(number: int, name: str) -> dict[str, Any]:
    return {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": name}


def add(path: str, *, deleted: list[int] | None = None, stats: bool = True) -> dict[str, Any]:
    action: dict[str, Any] = {
        "path": path,
        "partitionValues": {"col-7f": "2026-05-01"},
        "size": 100,
        "modificationTime": 1_780_000_000_000,
        "dataChange": True,
    }
    if stats:
        action["stats"] = '{"numRecords":10}'
    if deleted:
        bitmap = roaring(deleted)
        action["deletionVector"] = vector("i", z85(bitmap), len(bitmap), len(deleted))
    return action


def vector(kind: str, where: str, size: int, cardinality: int) -> dict[str, Any]:
    return {"storageType": kind, "pathOrInlineDv": where, "sizeInBytes": size, "cardinality": cardinality}


def roaring(positions: list[int]) -> bytes:
    """Delta's portable array of bitmaps with one bitmap, which has one array container."""
    head = struct.pack("<iQI", 1681511377, 1, 0)
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(positions) - 1, 16)
    return head + bitmap + struct.pack(f"<{len(positions)}H", *positions)


def z85(content: bytes) -> str:
    content += bytes(-len(content) % 4)
    text = ""
    for (number,) in struct.iter_unpack(">I", content):
        text += "".join(Z85[number // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return text
