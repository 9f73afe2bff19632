"""Commits new data files of a small table, in place of earlier ones or beside them, without Spark.

In: the table's objects, the snapshot that the change was made from, and rows by the value of the partition's column. Out:
whether it was committed. It is not committed if another writer committed since that snapshot: of two writers of one version,
exactly one wins. For small tables with few changes.
"""

from __future__ import annotations

import io
import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from forebay.lake.log.listing import commit_name
from forebay.lake.log.snapshot import Snapshot
from forebay.lake.objects import Objects

TYPES = {
    pa.string(): "string",
    pa.int64(): "long",
    pa.bool_(): "boolean",
    pa.timestamp("us", "UTC"): "timestamp",
}


def replace_files(table: Objects, snapshot: Snapshot | None, partition: str, rows: Mapping[str, pa.Table]) -> bool:
    """The rows are without the column of the partition, and take the place of all that the partition has."""
    return _commit(table, snapshot, partition, rows, [*_removes(snapshot, partition, rows)])


def add_files(table: Objects, snapshot: Snapshot | None, partition: str, rows: Mapping[str, pa.Table]) -> bool:
    """The same, and all that the partition has stays."""
    return _commit(table, snapshot, partition, rows, [])


def _commit(
    table: Objects,
    snapshot: Snapshot | None,
    partition: str,
    rows: Mapping[str, pa.Table],
    removes: Sequence[dict[str, Any]],
) -> bool:
    written = {f"{partition}={value}/part-{uuid.uuid4()}.parquet": value for value in rows}
    adds = []
    for path, value in written.items():
        content = _parquet(rows[value])
        table.write(path, content)
        adds.append(_add(path, partition, value, len(content), rows[value].num_rows))
    version = 0 if snapshot is None else snapshot.version + 1
    actions = [_said_of_commit(), *([] if snapshot else _new_table(partition, next(iter(rows.values())).schema))]
    actions += [*removes, *adds]
    commit = "\n".join(json.dumps(action, separators=(",", ":")) for action in actions)
    if table.write_once(commit_name(version), commit.encode()):
        return True
    table.delete(written)
    return False


def _parquet(rows: pa.Table) -> bytes:
    content = io.BytesIO()
    pq.write_table(rows, content)
    return content.getvalue()


def _add(path: str, partition: str, value: str, size: int, rows: int) -> dict[str, Any]:
    stats = json.dumps({"numRecords": rows})
    added = {"path": path, "partitionValues": {partition: value}, "size": size, "modificationTime": _now()}
    return {"add": {**added, "dataChange": True, "stats": stats}}


def _removes(snapshot: Snapshot | None, partition: str, rows: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for file in snapshot.files if snapshot else ():
        if dict(file.partition)[partition] in rows:
            yield file.removal(_now())


def _said_of_commit() -> dict[str, Any]:
    """Its id makes it another one than that of any other writer."""
    return {"commitInfo": {"timestamp": _now(), "operation": "WRITE", "txnId": str(uuid.uuid4())}}


def _new_table(partition: str, schema: pa.Schema) -> list[dict[str, Any]]:
    named = [(partition, "string"), *((field.name, TYPES[field.type]) for field in schema)]
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in named]
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [partition],
        "configuration": {},
        "createdTime": _now(),
    }
    return [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]


def _now() -> int:
    return time.time_ns() // 1_000_000
