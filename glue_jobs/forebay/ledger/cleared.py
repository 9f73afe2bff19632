"""Deletions that forebay made itself: `after_load` deleted a landed file after it was loaded. They take out nothing.

A service may replace `after_load` with `on_delete = "forget"` while its queue still has the notices. The notes of `after_load`
tell them apart: S3 and the note name the same key and nearly the same time.

In: the files of a batch, and the table of notes. Out: the ids of the deletions that are ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from forebay.lake.log.listing import NoTable
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import Objects
from forebay.lake.rows import python_rows
from forebay.landed_file import LandedFile
from forebay.ledger.data_files import opened, plainly_typed

__all__ = ["CLOCKS_DIFFER", "deletions_of_ours", "noted_since"]

CLOCKS_DIFFER = timedelta(minutes=15)
"""S3 refuses requests of a machine whose clock differs more from its own."""
DELETED_IT = ("moved", "deleted")

Noted = Mapping[tuple[str, str], Sequence[datetime]]
"""When `after_load` deleted the object of each bucket and key."""


def deletions_of_ours(files: Iterable[LandedFile], notes: Objects) -> frozenset[str]:
    """Reads notes only if there are deletions, and only those that are new enough."""
    times = {file: file.event_time for file in files if file.is_deletion and file.event_time is not None}
    if not times:
        return frozenset()
    noted = noted_since(notes, min(times.values()) - CLOCKS_DIFFER, {(file.bucket, file.key) for file in times})
    return frozenset(
        file.file_id
        for file, at in times.items()
        if any(abs(at - noted_at) <= CLOCKS_DIFFER for noted_at in noted.get((file.bucket, file.key), ()))
    )


def noted_since(notes: Objects, since: datetime, keys: Iterable[tuple[str, str]]) -> Noted:
    found: dict[tuple[str, str], list[datetime]] = {key: [] for key in keys}
    try:
        files = read_snapshot(notes).files
    except NoTable:
        return found
    for file in files:
        if file.modified >= since:
            with opened(notes, file) as parquet:
                rows = plainly_typed(parquet.read(columns=["bucket", "key", "action", "at"]))
            for row in python_rows(rows):
                if row["action"] in DELETED_IT and (key := (row["bucket"], row["key"])) in found:
                    found[key].append(row["at"])
    return found
