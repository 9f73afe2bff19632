"""A table at its newest version: its live data files, and its definition.

In: the table's objects. Out: a `Snapshot`. `NoTable`, `BrokenLog` and `UnsupportedTable` name the table and the problem. This
is our own reader: for a thousand tables of a thousand files, delta-rs took almost 20 s, nine tenths of it to parse statistics
that are not needed here. Nor does it report how many rows a deletion vector deletes without opening it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise, repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forebay.lake.log.listing import (
    LOG,
    BrokenLog,
    Listing,
    NoTable,
    UnsupportedTable,
    commit_name,
    content_of,
    list_log,
    newest_checkpoint,
    version_of_commit,
)
from forebay.lake.log.live_file import LiveFile, Partition
from forebay.lake.objects import Objects
from forebay.texts import listed

KNOWN_READER_FEATURES = {
    "appendOnly",
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "vacuumProtocolCheck",
    "variantType",
    "variantType-preview",
    "variantShredding-preview",
    "v2Checkpoint",
}
"""Those that change nothing about which files are live, or that are read here. v2Checkpoint allows old checkpoints too."""

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


@dataclass(frozen=True)
class Snapshot:
    """`configuration` are the table's properties; `partition_types` are Spark's names of types, by column; `transactions` the
    newest number of each application."""

    place: str
    listing: Listing
    files: tuple[LiveFile, ...]
    partition_types: Mapping[str, str]
    configuration: Mapping[str, str]
    writer_features: frozenset[str] = frozenset()
    columns: tuple[str, ...] = ()
    transactions: Mapping[str, int] = field(default_factory=dict)
    said_of: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The metadata of each column that has some."""
    created_at: datetime | None = None
    """When the table was made, by the clock of its first writer."""

    @property
    def version(self) -> int:
        return self.listing.version

    @property
    def clustered(self) -> bool:
        return "clustering" in self.writer_features


@dataclass(frozen=True)
class Log:
    """The parts of a snapshot: the newest checkpoint and the later commits."""

    place: str
    listing: Listing
    checkpoint: tuple[bytes, ...]
    commits: tuple[bytes, ...]


def read_snapshot(table: Objects, *, whole_log: bool = False, up_to: int | None = None) -> Snapshot:
    """Reads the table at its newest version, or at version `up_to`. `whole_log` counts the objects of all of the log;
    otherwise those since the last checkpoint."""
    return replay(fetch_log(table, whole_log=whole_log, up_to=up_to))


def live_files(table: Objects) -> tuple[LiveFile, ...]:
    """The data files of the newest version; none where there is no table yet."""
    try:
        return read_snapshot(table).files
    except NoTable:
        return ()


def fetch_log(table: Objects, *, whole_log: bool = False, up_to: int | None = None) -> Log:
    """The half that waits for the network."""
    listing = list_log(table, whole=whole_log, up_to=up_to)
    checkpoint, commits = (
        tuple(content_of(table, name) for name in names) for names in (listing.checkpoint, listing.commits)
    )
    return Log(table.place, listing, checkpoint, commits)


def replay(log: Log) -> Snapshot:
    """The half that computes."""
    return _replayed(_Replay(log.place), log)


class Followed:
    """A table that others keep writing to. It is read once; after that, only the new commits."""

    def __init__(self, table: Objects) -> None:
        self._table, self._replay = table, _Replay(table.place)
        self._listing: Listing | None = None

    def newest(self) -> Snapshot:
        listing = self._listing
        newer = [] if listing is None else self._newer(listing.version)
        if listing is None or newer is None:
            log, self._replay = fetch_log(self._table), _Replay(self._table.place)
        else:
            listing = replace(listing, version=listing.version + len(newer))
            log = Log(self._table.place, listing, (), tuple(content_of(self._table, name) for name in newer))
        self._listing = log.listing
        return _replayed(self._replay, log)

    def _newer(self, version: int) -> list[str] | None:
        """None where one of them is missing: a checkpoint took its place."""
        found = [*self._table.found(LOG, after=commit_name(version))]
        versions = [number for one in found if (number := version_of_commit(one.name)) is not None]
        newest = max([version + len(versions), newest_checkpoint(found)[0]])
        return [*map(commit_name, versions)] if versions == [*range(version + 1, newest + 1)] else None


def _replayed(table: _Replay, log: Log) -> Snapshot:
    try:
        for content in log.checkpoint:
            table.checkpoint(content)
        for content in log.commits:
            table.commit(content)
        return table.snapshot(log.listing)
    except (ValueError, KeyError, TypeError, pa.ArrowException) as broken:
        raise BrokenLog(f"{log.place}: {type(broken).__name__}: {broken}") from broken


@dataclass
class _Replay:
    """The state of the log so far."""

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

    def snapshot(self, listing: Listing) -> Snapshot:
        if not self.metadata or not self.protocol:
            raise BrokenLog(f"{self.place}: its log has no metadata or no protocol")
        reading, writing = (frozenset(self.protocol.get(k) or ()) for k in ("readerFeatures", "writerFeatures"))
        unknown = sorted(reading - KNOWN_READER_FEATURES)
        newest = self.protocol["minReaderVersion"]
        if unknown or newest > 3:
            raise UnsupportedTable(f"{self.place}: needs {', '.join(unknown) or f'reader version {newest}'}")
        columns = list(self.metadata.get("partitionColumns") or ())
        fields = {f["name"]: f for f in json.loads(self.metadata["schemaString"])["fields"]}
        physical = [
            (fields[name].get("metadata") or {}).get("delta.columnMapping.physicalName", name) for name in columns
        ]
        return Snapshot(
            self.place,
            listing,
            tuple(self._files(columns, physical)),
            {name: str(fields[name]["type"]) for name in columns},
            dict(self.metadata.get("configuration") or {}),
            writing,
            tuple(fields),
            dict(self.transactions),
            {name: one["metadata"] for name, one in fields.items() if one.get("metadata")},
            None if (created := self.metadata.get("createdTime")) is None else _moment(created),
        )

    # --- inside ---

    def _act(self, action: Mapping[str, Any]) -> None:
        if added := action.get("add"):
            path, vector = added["path"], added.get("deletionVector")
            values = tuple((added.get("partitionValues") or {}).items())
            self.live[_key(path, vector)] = LiveFile(
                path,
                self.partitions.setdefault(values, values),
                added["size"],
                _rows(added.get("stats")),
                _moment(added["modificationTime"]),
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
        moments = {one: _moment(one) for one in set(modified)}
        at = map(moments.__getitem__, modified)
        entries = [*_entries(added.field("partitionValues"))]
        values = map(self.partitions.setdefault, entries, entries)
        facts = zip(path, values, size, rows, at, deleted, strict=True)
        # `LiveFile` without its own constructor, which is in Python.
        self.live.update(zip(keys, map(tuple.__new__, repeat(LiveFile), facts), strict=True))

    def _files(self, columns: list[str], physical: list[str]) -> Iterable[LiveFile]:
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


def _moment(milliseconds: int) -> datetime:
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
