"""A table's definition in each version: columns, partitions, properties, and the protocol. No files.

In: the table's objects. Out: its current `Definition`, or a `TableHistory` of all versions in its log. Delta deletes commits
after `delta.logRetentionDuration`, 30 days by default; a checkpoint then has the definition that they led to. `NoTable` and
`BrokenLog` name the table and the problem.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from forebay.errors import InvalidConfiguration
from forebay.lake.listed import Listed
from forebay.lake.log.listing import (
    LOG,
    BrokenLog,
    NoTable,
    UnsupportedTable,
    content_of,
    list_log,
    newest_checkpoint,
    version_of_commit,
)
from forebay.lake.objects import Objects
from forebay.lake.origin import origins_of
from forebay.threads import in_threads

SAYS = ("metaData", "domainMetadata")
WORDS = tuple(f'"{name}"'.encode() for name in SAYS)


@dataclass(frozen=True)
class Definition:
    """`version` is the one that made the table so; `schema` is Delta's JSON of a struct. `id` is the table's own: another
    table at the same place has another one."""

    version: int
    at: datetime
    schema: Mapping[str, Any]
    partition_columns: tuple[str, ...] = ()
    cluster_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True)
class TableHistory:
    """Every version that made the table another one, the oldest first, and the first version that the log still knows."""

    place: str
    oldest: int
    newest: int
    definitions: tuple[Definition, ...]

    def of(self, version: int) -> Definition:
        """The definition in this version."""
        if not self.oldest <= version <= self.newest:
            problem = f"has no version {version} in its log"
            raise InvalidConfiguration.one(self.place, problem, f"it has {self.oldest} to {self.newest}")
        return next(one for one in reversed(self.definitions) if one.version <= version)


def definition_of(table: Objects) -> Definition:
    """The current definition of the table."""
    listing = list_log(table)
    replay = _Replay()
    for name in listing.checkpoint:
        replay.checkpoint(content_of(table, name))
    for lines in _definition_lines(table, listing.commits):
        replay.commit(lines)
    if (now := replay.definition(listing.version, listing.newest.astimezone(UTC))) is None:
        raise BrokenLog(f"{table.place}: its log has no metadata")
    return now


def origins_in(table: Objects) -> tuple[str, ...]:
    """The tables from which it is computed. None where it cannot be read: forebay makes no such table."""
    try:
        return origins_of(definition_of(table).configuration)
    except (NoTable, BrokenLog, UnsupportedTable):
        return ()


def history_of(table: Objects) -> TableHistory:
    found = list(table.found(LOG))
    commits = [(version, one) for one in found if (version := version_of_commit(one.name)) is not None]
    replay = _Replay()
    made = [] if commits and commits[0][0] == 0 else list(_before(table, found, commits, replay))
    if not commits and not made:
        raise NoTable(f"{table.place} is not a Delta table: it has no log")
    lines_of_commits = _definition_lines(table, [one.name for _, one in commits])
    for (version, commit), lines in zip(commits, lines_of_commits, strict=True):
        if replay.commit(lines) and (now := replay.definition(version, commit.modified.astimezone(UTC))) is not None:
            made.append(now)
    if not made:
        raise BrokenLog(f"{table.place}: its log has no metadata")
    newest = commits[-1][0] if commits else made[-1].version
    return TableHistory(table.place, made[0].version, newest, tuple(made))


def _before(
    table: Objects, found: Sequence[Listed], commits: Sequence[tuple[int, Listed]], replay: _Replay
) -> Iterator[Definition]:
    """The definition that deleted commits led to, if a checkpoint has it."""
    version, names = newest_checkpoint(found, up_to=commits[0][0] if commits else None)
    for name in names:
        replay.checkpoint(content_of(table, name))
    for at in sorted(one.modified for one in found if one.name in names)[-1:]:
        if (made := replay.definition(version, at.astimezone(UTC))) is not None:
            yield made


def _definition_lines(table: Objects, names: Iterable[str]) -> list[list[bytes]]:
    """The lines of each commit that define the table. The others are not kept: a log may be long."""

    def lines_of(name: str) -> list[bytes]:
        return [line for line in content_of(table, name).splitlines() if any(word in line[:32] for word in WORDS)]

    return in_threads(lines_of, names, at_once=32)


@dataclass
class _Replay:
    """The state of the log so far."""

    metadata: Mapping[str, Any] = field(default_factory=dict)
    clustered: tuple[str, ...] = ()

    def checkpoint(self, content: bytes) -> None:
        file = pq.ParquetFile(pa.BufferReader(content))
        there = [name for name in SAYS if name in file.schema_arrow.names]
        rows = file.read(columns=there, use_threads=False)
        for name in there:
            for action in rows[name].drop_null().to_pylist():
                self._hear(name, action)

    def commit(self, lines: Iterable[bytes]) -> bool:
        """Whether they said anything of the table itself."""
        heard = False
        for line in lines:
            for name, action in json.loads(line).items():
                heard = self._hear(name, action) or heard
        return heard

    def definition(self, version: int, at: datetime) -> Definition | None:
        if not self.metadata:
            return None
        return Definition(
            version,
            at,
            json.loads(self.metadata["schemaString"]),
            tuple(self.metadata.get("partitionColumns") or ()),
            self.clustered,
            dict(self.metadata.get("configuration") or {}),
            str(self.metadata.get("id") or ""),
        )

    def _hear(self, name: str, action: Any) -> bool:
        if name == "metaData":
            self.metadata = action
        elif name == "domainMetadata" and action.get("domain") == "delta.clustering":
            columns = [] if action.get("removed") else json.loads(action["configuration"])["clusteringColumns"]
            self.clustered = tuple(".".join(column) for column in columns)
        else:
            return False
        return True
