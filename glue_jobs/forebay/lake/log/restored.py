"""Whether somebody restored an earlier version of a table by hand: a `RESTORE` makes a newer version of old rows."""

from __future__ import annotations

from functools import partial

from forebay.lake.log.commit import NEWEST, info_of
from forebay.lake.log.listing import LOG, BrokenLog, NoTable, commit_name, version_of_commit
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import Objects
from forebay.threads import in_threads

AT_ONCE = 32


def restored_since(table: Objects, version: int) -> int | None:
    """The version before a `RESTORE` after this one that no later one took back; None without one."""
    later = (version_of_commit(found.name) for found in table.found(LOG, after=commit_name(version)))
    numbers = [number for number in later if number is not None and number > version][-NEWEST:]
    infos = in_threads(partial(info_of, table), numbers, AT_ONCE)
    before: int | None = None
    for number, info in zip(numbers, infos, strict=True):
        if info.get("operation") == "RESTORE":
            was = number - 1 if before is None else before
            before = None if _are_equal(table, was, number) else was
    return before


def _are_equal(table: Objects, one: int, other: int) -> bool:
    """Whether both versions have the same files. The log may no longer reach back to them."""
    try:
        first, then = ({file.path for file in read_snapshot(table, up_to=at).files} for at in (one, other))
    except (BrokenLog, NoTable):
        return False
    return first == then
