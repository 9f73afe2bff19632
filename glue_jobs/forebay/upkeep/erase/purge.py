"""Deletes all objects that held erased subjects' rows: files of older versions, change feeds, orphans, and the log of that
time.

In: a table from which their rows have left, at the first version without them. Out: `Purged`. First the log gets a
checkpoint, for the bounds of its data files name values: in earlier commits, in earlier checkpoints, and in what was written
beside them. Then every data file that is not live is looked into, also in change feeds, and of those no log knows. A versioned
bucket keeps what was deleted or replaced, perhaps long ago: such versions go in the same way. Run again, it finds what is left.
Whoever still reads an older version of the table finds its files gone: it is called once that is due.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO
from urllib.parse import unquote

import pyarrow as pa

from forebay.lake.listed import OldVersion
from forebay.lake.log.listing import LOG, list_log
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import Objects
from forebay.upkeep.erase.places import Place
from forebay.upkeep.erase.rows import Erased, Found, found_in

WriteCheckpoint = Callable[[int], None]
"""Writes a checkpoint of this version of the table. Jobs use Delta Kernel for it, the command line delta-rs."""

OF_A_VERSION = re.compile(rf"{LOG}(?:_commits/|_staged_commits/)?\.?(\d{{20}})\.")
HADOOP_SUM = re.compile(r"(?:.*/)?\.(.+)\.crc")
"""The checksum that Hadoop keeps beside a file on a disk."""


@dataclass(frozen=True)
class Purged:
    """How many objects were deleted. `unjudged` ones stay, because the subjects of their rows are unknown."""

    deleted: int
    unjudged: int


def purge(
    table: Objects, places: Sequence[Place], erased: Erased, *, since: int, write_checkpoint: WriteCheckpoint
) -> Purged:
    """`since` is the first version without them."""
    listing = list_log(table)
    if listing.checkpoint_version < listing.version:
        write_checkpoint(listing.version)
    return delete_old_files(table, places, erased, _old_log(table, since))


def delete_old_files(
    table: Objects, places: Sequence[Place], erased: Erased, is_old: Callable[[str], bool] = lambda name: False
) -> Purged:
    """Deletes data files with such rows that are not live. `is_old` selects objects of the log that are deleted unread."""
    search = _Search(places, erased)
    doomed = {found.name for found in table.found(LOG) if is_old(found.name)} | {*_old_files(table, search)}
    table.delete(doomed)
    versions = list(_old_versions(table, search, lambda name: name in doomed or is_old(name)))
    table.delete_old(versions)
    return Purged(len(doomed) + len({one.name for one in versions} - doomed), len(search.unjudged))


@dataclass
class _Search:
    """`unjudged` are the names of data files that are torn, or have rows that nobody can judge."""

    places: Sequence[Place]
    erased: Erased
    unjudged: set[str] = field(default_factory=set)

    def holds(self, name: str, open_: Callable[[], BinaryIO | None]) -> bool:
        content = open_() if name.endswith(".parquet") else None
        if content is None:
            return False
        with content:
            try:
                found = found_in(content, self.places, self.erased, _values_in(name))
            except pa.ArrowInvalid:
                found = Found(unjudged=1)  # no whole file: its writer died, or is not done
        if found.unjudged and not found.rows:
            self.unjudged.add(name)
        return bool(found.rows)


def _old_log(table: Objects, since: int) -> Callable[[str], bool]:
    """All of versions before `since`, and checkpoints up to the newest one: bounds outlive the files that they are of."""
    newest = list_log(table).checkpoint_version

    def is_old(name: str) -> bool:
        match = OF_A_VERSION.match(name)
        return bool(
            match and (int(match[1]) < min(since, newest) or (int(match[1]) < newest and ".checkpoint" in name))
        )

    return is_old


def _old_files(table: Objects, search: _Search) -> Iterator[str]:
    """The files are listed before the log is read: one that is committed meanwhile is live."""
    listed = [found.name for found in table.found() if not found.name.startswith(LOG)]
    live = {unquote(file.path) for file in read_snapshot(table).files}
    doomed = {name for name in listed if name not in live and search.holds(name, partial(table.open, name))}
    yield from doomed
    sums = ((name, HADOOP_SUM.fullmatch(name)) for name in listed)
    yield from (name for name, of in sums if of and f"{name.rpartition('/')[0]}/{of[1]}".lstrip("/") in doomed)


def _old_versions(table: Objects, search: _Search, goes: Callable[[str], bool]) -> Iterator[OldVersion]:
    """The old versions of objects that a bucket keeps although they were deleted or replaced. `goes`: those to delete without
    a check."""
    for one in table.old_versions():
        is_of_log = one.name.startswith(LOG)
        if goes(one.name) or (not is_of_log and search.holds(one.name, partial(table.open_old, one))):
            yield one


def _values_in(name: str) -> tuple[tuple[str, str | None], ...]:
    """The partition values of a file that is in no version, from its folders."""
    pairs = (part.partition("=") for part in name.split("/")[:-1] if "=" in part)
    return tuple((column, unquote(value)) for column, _, value in pairs)
