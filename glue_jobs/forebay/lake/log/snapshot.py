"""A table at its newest version: its live data files, and its definition.

In: the table's objects. Out: a `Snapshot`. `NoTable`, `BrokenLog` and `UnsupportedTable` name the table and the problem. This
is our own reader: for a thousand tables of a thousand files, delta-rs took almost 20 s, nine tenths of it to parse statistics
that are not needed here. Nor does it report how many rows a deletion vector deletes without opening it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

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
from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.replay import Replay, moment
from forebay.lake.objects import Objects

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


def read_snapshot(table: Objects, *, up_to: int | None = None) -> Snapshot:
    """Reads the table at its newest version, or at version `up_to`."""
    return replay(fetch_log(table, up_to=up_to))


def live_files(table: Objects) -> tuple[LiveFile, ...]:
    """The data files of the newest version; none where there is no table yet."""
    try:
        return read_snapshot(table).files
    except NoTable:
        return ()


def fetch_log(table: Objects, *, whole_log: bool = False, up_to: int | None = None) -> Log:
    """The half that waits for the network. `whole_log` counts the objects of all of the log; otherwise those since the last
    checkpoint."""
    listing = list_log(table, whole=whole_log, up_to=up_to)
    checkpoint, commits = (
        tuple(content_of(table, name) for name in names) for names in (listing.checkpoint, listing.commits)
    )
    return Log(table.place, listing, checkpoint, commits)


def replay(log: Log) -> Snapshot:
    """The half that computes."""
    return _replayed(Replay(log.place), log)


class Followed:
    """A table that others keep writing to. It is read once; after that, only the new commits."""

    def __init__(self, table: Objects) -> None:
        self._table, self._replay = table, Replay(table.place)
        self._listing: Listing | None = None

    def newest(self) -> Snapshot:
        listing = self._listing
        newer = [] if listing is None else self._newer(listing.version)
        if listing is None or newer is None:
            log, self._replay = fetch_log(self._table), Replay(self._table.place)
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


def _replayed(table: Replay, log: Log) -> Snapshot:
    try:
        for content in log.checkpoint:
            table.checkpoint(content)
        for content in log.commits:
            table.commit(content)
        return _snapshot(table, log.listing)
    except (ValueError, KeyError, TypeError, pa.ArrowException) as broken:
        raise BrokenLog(f"{log.place}: {type(broken).__name__}: {broken}") from broken


def _snapshot(state: Replay, listing: Listing) -> Snapshot:
    if not state.metadata or not state.protocol:
        raise BrokenLog(f"{state.place}: its log has no metadata or no protocol")
    reading, writing = (frozenset(state.protocol.get(k) or ()) for k in ("readerFeatures", "writerFeatures"))
    unknown = sorted(reading - KNOWN_READER_FEATURES)
    newest = state.protocol["minReaderVersion"]
    if unknown or newest > 3:
        raise UnsupportedTable(f"{state.place}: needs {', '.join(unknown) or f'reader version {newest}'}")
    columns = list(state.metadata.get("partitionColumns") or ())
    fields = {f["name"]: f for f in json.loads(state.metadata["schemaString"])["fields"]}
    physical = [(fields[name].get("metadata") or {}).get("delta.columnMapping.physicalName", name) for name in columns]
    return Snapshot(
        state.place,
        listing,
        tuple(state.files(columns, physical)),
        {name: str(fields[name]["type"]) for name in columns},
        dict(state.metadata.get("configuration") or {}),
        writing,
        tuple(fields),
        dict(state.transactions),
        {name: one["metadata"] for name, one in fields.items() if one.get("metadata")},
        None if (created := state.metadata.get("createdTime")) is None else moment(created),
    )
