"""Deletions that forebay made itself: `after_load` deleted a landed file after it was loaded. They take out nothing.

A service may replace `after_load` with `on_delete = "forget"` while its queue still has the notices. The notes of `after_load`
tell them apart: S3 and the notes name the same key, and the deletion lies between the note from before it and the one from
after it. A run that died left only the first one. It deletes only the content that it has loaded. So a deletion is the
producer's if it takes out another content that was put later.

In: the files of a batch, what the ledger has of their keys, and the table of notes. Out: the ids of the deletions that are
ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from forebay.aws.preflight import CLOCKS_DIFFER
from forebay.lake.log.snapshot import live_files
from forebay.lake.objects import Objects
from forebay.lake.rows import python_rows
from forebay.landed_file import LandedFile
from forebay.ledger.data_files import opened, plainly_typed
from forebay.notification.order import takes_out, written_later

STARTED: Literal["started"] = "started"
"""The note from before."""
DELETED_IT = ("moved", "deleted")
LONGEST = timedelta(days=1)
"""From a note of a file to its deletion: a run copies files in between. Later, whoever deletes it is somebody else."""

Key = tuple[str, str]
Noted = Mapping[Key, Sequence["_Note"]]
"""The notes of `after_load` on the object of each bucket and key."""


@dataclass
class _Note:
    """The times between which it deleted this file; without an end if a run died and no other one followed."""

    file_id: str
    started: list[datetime] = field(default_factory=list)
    ended: datetime | None = None
    deleted: bool = False

    def explains(self, at: datetime) -> bool:
        ended = self.ended or at
        if self.deleted:
            return _lies(at, min(self.started, default=ended), ended)
        return any(_lies(at, since, min(ended, since + LONGEST)) for since in self.started)

    def add(self, action: str, at: datetime) -> None:
        if action == STARTED:
            self.started.append(at)
        else:
            self.ended, self.deleted = max(at, self.ended or at), self.deleted or action in DELETED_IT


def _lies(at: datetime, since: datetime, until: datetime) -> bool:
    return since - CLOCKS_DIFFER <= at <= until + CLOCKS_DIFFER


def deletions_of_ours(
    files: Sequence[LandedFile], notes: Objects, known: Mapping[Key, Sequence[LandedFile]]
) -> frozenset[str]:
    """Reads notes only if there are deletions, and only those that are new enough. `known` are the versions in the ledger."""
    times = {file: file.event_time for file in files if file.is_deletion and file.event_time is not None}
    if not times:
        return frozenset()
    since = min(times.values()) - CLOCKS_DIFFER - LONGEST
    noted = noted_since(notes, since, {(file.bucket, file.key) for file in times})
    versions: dict[Key, list[LandedFile]] = {key: [*known.get(key, ())] for key in noted}
    for file in files:
        if not file.is_deletion:
            versions.setdefault((file.bucket, file.key), []).append(file)
    return frozenset(
        file.file_id
        for file, at in times.items()
        if any(
            note.explains(at) and not _takes_out_more(file, note.file_id, versions[file.bucket, file.key])
            for note in noted[file.bucket, file.key]
        )
    )


def _takes_out_more(deletion: LandedFile, file_id: str, versions: Sequence[LandedFile]) -> bool:
    """Than the file with this id: another content, which was put after it. The same content tells nothing."""
    loaded = next((one for one in versions if one.file_id == file_id), None)
    return loaded is not None and any(
        one.etag != loaded.etag and not one.is_deletion and written_later(one, loaded) and takes_out(deletion, one)
        for one in versions
    )


def noted_since(notes: Objects, since: datetime, keys: Iterable[Key]) -> Noted:
    found: dict[Key, dict[str, _Note]] = {key: {} for key in keys}
    for file in live_files(notes):
        if file.modified >= since:
            with opened(notes, file) as parquet:
                rows = plainly_typed(parquet.read(columns=["bucket", "key", "action", "at", "file_id"]))
            for row in python_rows(rows):
                if (of_key := found.get((row["bucket"], row["key"]))) is not None:
                    of_key.setdefault(row["file_id"], _Note(row["file_id"])).add(row["action"], row["at"])
    return {key: [*of_key.values()] for key, of_key in found.items()}
