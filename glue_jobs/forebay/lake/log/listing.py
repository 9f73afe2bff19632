"""Finds the objects of a table's log that make up its newest version: the newest whole checkpoint, and every commit after it.

In: the table's objects. Out: a `Listing`. `NoTable` if there is no log, `BrokenLog` if a commit in between is missing, because
the files could not be trusted.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from forebay.errors import ForebayError
from forebay.lake.listed import Listed
from forebay.lake.objects import Objects

LOG = "_delta_log/"

COMMIT = re.compile(r"_delta_log/(\d{20})\.json")
CHECKPOINT = re.compile(r"_delta_log/(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
CHECKPOINT_V2 = re.compile(r"_delta_log/(\d{20})\.checkpoint\.[0-9a-f-]{36}\.(?:json|parquet)")


class NoTable(ForebayError):
    """There is no table there."""


class BrokenLog(ForebayError):
    """The log cannot be read, or something of it is missing."""


class UnsupportedTable(ForebayError):
    """The table needs what this reader cannot do."""


@dataclass(frozen=True)
class Listing:
    """`checkpoint` is empty where there is none. `objects` and `bytes` count all that was listed of the log."""

    version: int
    newest: datetime
    checkpoint_version: int
    checkpoint: tuple[str, ...]
    commits: tuple[str, ...]
    objects: int
    bytes: int


def has_log(table: Objects) -> bool:
    return next(iter(table.found(LOG)), None) is not None


def list_log(table: Objects, *, whole: bool = False, up_to: int | None = None) -> Listing:
    """Lists only the log after the last checkpoint, except for the `whole` log, or for the table in version `up_to`."""
    hint = None if whole or up_to is not None else _hint(table)
    if hint is not None:
        try:
            return _listing(table, list(table.found(LOG, after=f"{LOG}{hint:020}")), at_least=hint)
        except BrokenLog:
            pass  # the hint may be old, or of a checkpoint that is gone: the log itself decides
    return _listing(table, list(table.found(LOG)), up_to=up_to)


def commit_name(version: int) -> str:
    """The object of a commit, in its table."""
    return f"{LOG}{version:020}.json"


def committed_at(table: Objects, version: int) -> datetime | None:
    """When a commit was made, by the clock of its store; None where the log does not have it, or no more."""
    commit = next(iter(table.found(commit_name(version))), None)
    return None if commit is None else commit.modified.astimezone(UTC)


def content_of(table: Objects, name: str) -> bytes:
    """The bytes of an object that the log was listed with."""
    content = table.read(name)
    if content is None:
        raise BrokenLog(f"{table.place}: {name} disappeared while the log was read; is the table being dropped?")
    return content


def newest_checkpoint(found: Iterable[Listed], *, up_to: int | None = None) -> tuple[int, tuple[str, ...]]:
    """A checkpoint in parts counts when all of them are there; version -1 where there is none."""
    candidates: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for f in found:
        if match := CHECKPOINT.fullmatch(f.name):
            candidates[int(match[1]), int(match[3] or 1)].append(f.name)
    whole = [
        (version, names)
        for (version, parts), names in candidates.items()
        if len(names) == parts and (up_to is None or version <= up_to)
    ]
    version, names = max(whole, default=(-1, []))
    return version, tuple(sorted(names))


def version_of_commit(name: str) -> int | None:
    """None if the name is not a commit's."""
    match = COMMIT.fullmatch(name)
    return int(match[1]) if match else None


def _hint(table: Objects) -> int | None:
    content = table.read(f"{LOG}_last_checkpoint")
    try:
        return int(json.loads(content)["version"]) if content else None
    except (ValueError, KeyError, TypeError):
        return None


def _listing(table: Objects, found: list[Listed], *, at_least: int | None = None, up_to: int | None = None) -> Listing:
    commits = {version: f for f in found if (version := version_of_commit(f.name)) is not None}
    commits = {version: f for version, f in commits.items() if up_to is None or version <= up_to}
    version, names = newest_checkpoint(found, up_to=up_to)
    if at_least is not None and version < at_least:
        raise BrokenLog(f"{table.place}: the checkpoint of version {at_least} does not exist")
    if not commits and not names:
        raise NoTable(f"{table.place} is not a Delta table: it has no log")
    last = max(commits, default=version)
    needed = range(version + 1, last + 1)
    missing = [v for v in needed if v not in commits]
    if missing:
        if any(int(match[1]) > version for f in found if (match := CHECKPOINT_V2.fullmatch(f.name))):
            raise UnsupportedTable(
                f"{table.place}: it has V2 checkpoints (delta.checkpointPolicy=v2), which are not read"
            )
        raise BrokenLog(f"{table.place}: the commit of version {missing[0]} is missing")
    newest = commits[last].modified if last in commits else max(f.modified for f in found if f.name in names)
    return Listing(
        max(last, version),
        newest,
        version,
        names,
        tuple(commits[v].name for v in needed),
        len(found),
        sum(f.bytes for f in found),
    )
