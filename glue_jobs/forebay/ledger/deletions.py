"""Deletions of keys: a deletion is a version without records. It takes out the versions of its key that were written before it.

Pure. In: the versions of a key, in the ledger and in a batch. Out: those that a deletion takes out, and the rows that know when
their bytes were written last. The order of arrival changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from forebay.landed_file import LandedFile
from forebay.ledger.versions import Earlier
from forebay.notification.order import is_same_put, takes_out, written_later

Key = tuple[str, str]
SameBytes = Callable[[LandedFile, LandedFile], bool]


def is_deleted(file: LandedFile, deletions: Iterable[LandedFile]) -> bool:
    return any(takes_out(one, file) for one in deletions)


def deleted_by(
    seen: Earlier, versions: Sequence[Earlier], new: Sequence[LandedFile], same_bytes: SameBytes
) -> LandedFile | None:
    """The new deletion that takes out an earlier version, read or not. Its rows are also those of its duplicates, so they stay
    until all of these are deleted."""
    if not (seen.stands or seen.unread):
        return None
    twins = [one.file for one in versions if one.is_duplicate and same_bytes(one.file, seen.file)]
    every = [*new, *(one.file for one in versions if one.deletes)]
    if not all(is_deleted(file, every) for file in (seen.file, *twins)):
        return None
    return next((one for one in new if any(takes_out(one, file) for file in (seen.file, *twins))), None)


def as_written_last(files: Sequence[LandedFile], versions: Mapping[Key, Sequence[Earlier]]) -> list[LandedFile]:
    """The files, each with the latest time at which S3 says that it was written. A notice that comes again after a deletion
    and a later put of the same bytes would otherwise count as older than the deletion."""
    known = [seen.file for some in versions.values() for seen in some]
    last: dict[str, LandedFile] = {}
    for file in (*known, *files):
        before = last.get(file.file_id)
        if before is None or written_later(file, before):
            last[file.file_id] = file
    times = ((file, last[file.file_id]) for file in files)
    return [replace(file, sequencer=one.sequencer, event_time=one.event_time) for file, one in times]


def put_again(files: Iterable[LandedFile], versions: Mapping[Key, Sequence[Earlier]]) -> dict[Key, list[Earlier]]:
    """The versions, with the latest time of each file. In a bucket without versions, a key may get the same bytes again. Then a
    deletion in between, which arrives late, must not take them out."""
    latest = {file.file_id: file for file in files}
    return {
        key: [_again(seen, latest.get(seen.file.file_id), [one.file for one in some if one.deletes]) for seen in some]
        for key, some in versions.items()
    }


def _again(seen: Earlier, file: LandedFile | None, deletions: Iterable[LandedFile]) -> Earlier:
    if file is None or not (seen.is_marked or (seen.final and seen.has_bytes)):
        return seen
    if not is_put_again(file, seen):
        return seen
    if seen.came_back or is_deleted(seen.file, deletions):
        return seen  # it is back, and is loaded again
    latest = replace(seen.file, sequencer=file.sequencer, event_time=file.event_time)
    return Earlier(latest, seen.with_time_of(file), put_again=True)


def is_put_again(file: LandedFile, seen: Earlier) -> bool:
    """Whether the same bytes were put once more since the ledger's row was written, in a bucket without versions."""
    return not seen.file.has_own_version and written_later(file, seen.file) and not is_same_put(file, seen.file)
