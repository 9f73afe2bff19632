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
    """The version before the first `RESTORE` after this one; None without one, or where the last one went back to it."""
    later = (version_of_commit(found.name) for found in table.found(LOG, after=commit_name(version)))
    numbers = [number for number in later if number is not None and number > version][-NEWEST:]
    infos = in_threads(partial(info_of, table), numbers, AT_ONCE)
    made = [number for number, info in zip(numbers, infos, strict=True) if info.get("operation") == "RESTORE"]
    before = made[0] - 1 if made else None
    return before if before is not None and _paths(table, before) != _paths(table, made[-1]) else None


def _paths(table: Objects, version: int) -> set[str] | None:
    """None where the log no longer reaches back to this version."""
    try:
        return {file.path for file in read_snapshot(table, up_to=version).files}
    except (BrokenLog, NoTable):
        return None
