"""The state of a log, as its checkpoint and its commits are read one after the other.

In: their bytes. Out: the live files, the newest metadata and protocol, and the newest number of each application.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise, repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forebay.lake.log.live_file import LiveFile, Partition
from forebay.texts import listed

OF_A_CHECKPOINT = [
    "add.path",
    "add.partitionValues",
    "add.size",
    "add.modificationTime",
    "add.stats",
    "add.stats_parsed.numRecords",
    "add.deletionVector",
    "protocol",
    "metaData.schemaString",
    "metaData.partitionColumns",
    "metaData.configuration",
    "metaData.createdTime",
    "txn.appId",
    "txn.version",
]
"""Those that a checkpoint lacks are not read."""
ROWS = re.compile(r'"numRecords"\s*:\s*(?P<rows>\d+)')
ROWS_FIRST = rf"^\s*\{{\s*{ROWS.pattern}"


# A file and the rows deleted from it: another deletion vector makes it another thing in the log.
Key = str | tuple[str, str]


@dataclass
class Replay:
    """The state of a log so far."""

    place: str
    live: dict[Key, LiveFile] = field(default_factory=dict)
    """Their partitions are as the log has them."""
    partitions: dict[Partition, Partition] = field(default_factory=dict)
    """The same tuple for all files of a partition: memory, and quicker to compare."""
    protocol: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)

    def checkpoint(self, content: bytes) -> None:
        file = pq.ParquetFile(pa.BufferReader(content))
        table = file.read(columns=OF_A_CHECKPOINT, use_threads=False)
        for name in ("protocol", "metaData", "txn"):
            if name in table.column_names:
                for action in table[name].drop_null().to_pylist():
                    self._declare(name, action)
        if "add" in table.column_names:
            self._add_all(pa.chunked_array(table["add"].drop_null()).combine_chunks())

    def commit(self, content: bytes) -> None:
        for line in content.splitlines():
            if not line.startswith(b'{"commitInfo"'):
                self._act(json.loads(line) if line.strip() else {})

    def _act(self, action: Mapping[str, Any]) -> None:
        if added := action.get("add"):
            path, vector = added["path"], added.get("deletionVector")
            values = tuple((added.get("partitionValues") or {}).items())
            self.live[_key(path, vector)] = LiveFile(
                path,
                self.partitions.setdefault(values, values),
                added["size"],
                _rows(added.get("stats")),
                moment(added["modificationTime"]),
                (vector or {}).get("cardinality", 0),
            )
        elif removed := action.get("remove"):
            self.live.pop(_key(removed["path"], removed.get("deletionVector")), None)
        elif declared := action.get("protocol"):
            self._declare("protocol", declared)
        elif declared := action.get("metaData"):
            self._declare("metaData", declared)
        elif declared := action.get("txn"):
            self._declare("txn", declared)

    def _declare(self, what: str, action: Mapping[str, Any]) -> None:
        if what == "protocol":
            self.protocol = action
        elif what == "txn":
            self.transactions[action["appId"]] = action["version"]
        else:
            self.metadata = {**action, "configuration": dict(action.get("configuration") or {})}

    def _add_all(self, added: Any) -> None:
        """The same for a whole column of adds at once."""
        fields = {f.name for f in added.type}
        size, modified, path = (listed(added.field(name)) for name in ("size", "modificationTime", "path"))
        rows = _rows_of_all(added.field("stats")) if "stats" in fields else [None] * len(added)
        if "stats_parsed" in fields:
            parsed = added.field("stats_parsed").field("numRecords").to_pylist()
            rows = [known if known is not None else other for known, other in zip(rows, parsed, strict=True)]
        keys: Iterable[Key] = path
        deleted: Iterable[int] = [0] * len(path)
        if "deletionVector" in fields and added.field("deletionVector").null_count < len(added):
            vectors = added.field("deletionVector").to_pylist()
            keys = map(_key, path, vectors)
            deleted = (vector["cardinality"] if vector else 0 for vector in vectors)
        moments = {one: moment(one) for one in set(modified)}
        at = map(moments.__getitem__, modified)
        entries = [*_entries(added.field("partitionValues"))]
        values = map(self.partitions.setdefault, entries, entries)
        facts = zip(path, values, size, rows, at, deleted, strict=True)
        # `LiveFile` without its own constructor, which is in Python.
        self.live.update(zip(keys, map(tuple.__new__, repeat(LiveFile), facts), strict=True))

    def files(self, columns: list[str], physical: list[str]) -> Iterable[LiveFile]:
        known: dict[Partition, Partition] = {}
        for values in self.partitions:
            by_name = dict(values)
            texts = (by_name.get(name) for name in physical)
            # An empty text is null: so Delta reads it.
            known[values] = tuple((name, text or None) for name, text in zip(columns, texts, strict=True))
        if all(values == partition for values, partition in known.items()):
            return self.live.values()
        return (LiveFile(file.path, known[file.partition], *file[2:]) for file in self.live.values())


def _key(path: str, vector: Mapping[str, Any] | None) -> Key:
    if not vector:
        return path
    return path, f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"


def _entries(maps: Any) -> Iterator[tuple[Any, ...]]:
    """A map array's rows, each as pairs: much quicker than `to_pylist`, and most if all have as many."""
    pairs = list(zip(listed(maps.keys), listed(maps.items), strict=True))
    ends = listed(maps.offsets)
    if pairs and ends == [*range(0, len(pairs) + 1, each := ends[1] or 1)] and ends[-1] == len(pairs):
        return zip(*[iter(pairs)] * each, strict=True)
    return (tuple(pairs[begin:end]) for begin, end in pairwise(ends))


def moment(milliseconds: int) -> datetime:
    """A time of a log."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def _rows_of_all(stats: pa.StringArray) -> list[int | None]:
    """Nearly all writers put it first. To search for it takes eight times as long."""
    found = _numbers(stats, ROWS_FIRST)
    if found.null_count > stats.null_count:
        found = pc.coalesce(found, _numbers(stats, ROWS.pattern))
    return listed(found)


def _numbers(stats: pa.StringArray, pattern: str) -> pa.Int64Array:
    return pc.struct_field(pc.extract_regex(stats, pattern), "rows").cast(pa.int64())


def _rows(stats: str | None) -> int | None:
    found = ROWS.search(stats) if stats else None
    return int(found[1]) if found else None
