"""The facts by which a batch decides about its files: the ledger's rows of their keys, and the service's rules.

Pure. In: the files of a batch, in its order, and the earlier versions of their keys, exactly as the ledger has them. Out: the
earlier versions whose rows leave when files land, and the time at which the batch begins. `decision` has the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from forebay.landed_file import LandedFile
from forebay.ledger.deletions import deleted_by
from forebay.ledger.entry import hashes_in
from forebay.ledger.versions import Earlier, Sorted, Superseded
from forebay.notification.order import written_later

if TYPE_CHECKING:
    from forebay.declaration.service import Overwritten

Key = tuple[str, str]


@dataclass(frozen=True)
class Claim:
    """The files of a batch, and all that decides which of them are loaded. `skipped` are ids of files that an operator wants
    left out. `ignored` gives the rule by which a file is not read, if there is one. `dedupe`: whether a table of the service
    declares it."""

    files: Sequence[LandedFile]
    earlier: Mapping[Key, Sequence[Earlier]]
    rule_of: Callable[[str], Overwritten]
    skipped: Collection[str] = ()
    ignored: Callable[[LandedFile], str] = lambda file: ""
    dedupe: bool = False

    def begins(self, at: datetime, split: Sorted) -> datetime:
        """When a batch begins, by a clock that says `at`: later than any reading that the ledger has of a file that is read
        again. A clock may go back, and a rollback knows the earlier of two readings of a file by its time."""
        again = {file.file_id for file in split.retried}
        known = (seen for some in self.earlier.values() for seen in some if seen.file.file_id in again)
        return later_than((seen.row.get("claimed_at") for seen in known), at)

    def superseded(self, fresh: Iterable[LandedFile], readable: Mapping[str, str]) -> Iterator[Superseded]:
        """The earlier versions whose rows these files replace when they land; also versions that left all tables except
        those that could not be written."""
        hashes, fresh = self.hashes(readable), [*fresh]
        deletions = [file for file in fresh if file.is_deletion]
        by_deletion = self._deleted(deletions, {file.file_id for file in fresh}, hashes) if deletions else []
        yield from by_deletion
        gone = {one.earlier.file.file_id for one in by_deletion}
        for file in fresh:
            for seen in () if file.is_deletion else self.earlier.get((file.bucket, file.key), ()):
                if seen.file.file_id in gone:
                    continue
                itself = seen.file.file_id == file.file_id
                older = self._replaces(file) and not written_later(seen.file, file)
                if seen.stands and (itself or older or self._stands_in(file, seen, hashes)):
                    yield Superseded(seen, file)

    def _deleted(
        self, deletions: Sequence[LandedFile], fresh: Collection[str], hashes: Mapping[str, str]
    ) -> list[Superseded]:
        """The earlier versions that new deletions take out. A file that is loaded again replaces itself, and one that was not
        read before gets its end in this batch if it came again."""
        found, here = list[Superseded](), {file.file_id for file in self.files}
        of_keys: dict[Key, list[LandedFile]] = {}
        for one in deletions:
            of_keys.setdefault((one.bucket, one.key), []).append(one)
        for key, new in of_keys.items():
            versions = self.earlier.get(key, ())
            for seen in versions:
                by = deleted_by(seen, versions, new, lambda a, b: same_bytes(a, b, hashes))
                has_own_end = seen.file.file_id in (here if seen.unread else fresh)
                if by is not None and not has_own_end:
                    found.append(Superseded(seen, by))
        return found

    def hashes(self, readable: Mapping[str, str]) -> dict[str, str]:
        """The hashes of the bytes of all versions, by file id."""
        known = (
            (seen.file.file_id, seen.row.get("content_hash") or "") for some in self.earlier.values() for seen in some
        )
        return {**dict(known), **readable}

    def _stands_in(self, file: LandedFile, seen: Earlier, hashes: Mapping[str, str]) -> bool:
        """Whether it brings the same rows as the other one, which cannot be read any more."""
        his = (own for own in self.earlier.get((file.bucket, file.key), ()) if own.file.file_id == file.file_id)
        return any(own.stands_in for own in his) and same_bytes(file, seen.file, hashes)

    def _replaces(self, file: LandedFile) -> bool:
        """A forgotten file has no rows that could replace others."""
        his = (seen for seen in self.earlier.get((file.bucket, file.key), ()) if seen.file.file_id == file.file_id)
        return self.rule_of(file.key) == "replace" and not any(seen.wants_forgetting for seen in his)


def later_than(readings: Iterable[datetime | None], at: datetime) -> datetime:
    """The time by a clock that says `at`, or one that is just later than all readings."""
    return max([at, *(read_at + timedelta(microseconds=1) for read_at in readings if read_at is not None)])


def same_bytes(file: LandedFile, rival: LandedFile, hashes: Mapping[str, str]) -> bool:
    """Equal etags say so before anything is read. Different ones say nothing: with a KMS key, or after a multipart upload,
    a producer's retry has another etag."""
    ours, theirs = (hashes_in(hashes.get(one.file_id)) for one in (file, rival))
    return bool((file.etag and file.etag == rival.etag) or not theirs.isdisjoint(ours))
