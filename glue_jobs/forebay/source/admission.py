"""Decides which of the received messages make the batch, without changing anything.

In: messages with their contents. Out: each is taken (its new files become rows), a repeat (all its files are in earlier
batches), or held for the next batch because it does not fit. A message is never split: the only batch larger than the limits
is one that a single message fills. The same file announced twice in a batch is one row; both messages go with it. Two versions
of one key are two rows, the later one second where their sequencers compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from forebay.landed_file import LandedFile
from forebay.notification import newer
from forebay.source.manifest import AnnouncedFile, RecentFiles, mark_of
from forebay.source.queue import Message, Receipt


@dataclass(frozen=True, slots=True)
class Notice:
    """A message and the files that it announces."""

    message: Message
    files: tuple[LandedFile, ...]


class Admission:
    """A batch in the making. Not safe for threads; its caller has a lock."""

    def __init__(self, taken: RecentFiles, *, max_files: int, max_bytes: int) -> None:
        self._taken, self._max_files, self._max_bytes = taken, max_files, max_bytes
        self._rows: dict[bytes, AnnouncedFile] = {}
        self._bytes = 0
        self.receipts: list[Receipt] = []
        self.held: list[Notice] = []
        self.duplicates = 0

    @property
    def rows(self) -> list[AnnouncedFile]:
        return list(self._rows.values())

    @property
    def room(self) -> int:
        """The number of messages that still fit, as if each had one file."""
        full = self.held or self._bytes >= self._max_bytes
        return 0 if full else max(0, self._max_files - len(self._rows))

    def offer(self, notice: Notice) -> Literal["taken", "repeat", "held"]:
        """Decides on one message. Offer `held` ones to the next batch first."""
        message = notice.message
        new: dict[bytes, AnnouncedFile] = {}
        here = 0  # of its files, those which this batch has already
        for file in notice.files:
            mark = mark_of(file, message.message_id if message.again else None)
            here += mark in self._rows
            if mark not in self._rows and mark not in self._taken:
                announced = AnnouncedFile(
                    file, message.sent_at, message.receive_count, message.message_id, message.again
                )
                new.setdefault(mark, announced)
        if new and not self._fits(new):
            self.held.append(notice)
            return "held"
        self.duplicates += len(notice.files) - len(new)
        if not new and not here:
            return "repeat"
        self._rows.update(new)
        self._bytes += _size(new)
        self.receipts.append(message.receipt)
        return "taken"

    def _fits(self, new: dict[bytes, AnnouncedFile]) -> bool:
        return not self._rows or (
            len(self._rows) + len(new) <= self._max_files and self._bytes + _size(new) <= self._max_bytes
        )


def _size(rows: dict[bytes, AnnouncedFile]) -> int:
    return sum(row.file.size or 0 for row in rows.values())


def in_order(rows: list[AnnouncedFile], order: str) -> list[AnnouncedFile]:
    """The rows in the order of the batch: oldest first if requested. Versions of one key are in the order in which S3 wrote
    them, if that is known."""
    if order == "oldest-first":
        rows = sorted(rows, key=lambda row: row.file.event_time or row.sent_at)
    places: dict[tuple[str, str], list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault((row.file.bucket, row.file.key), []).append(place)
    ordered = list(rows)
    for several in places.values():
        if len(several) > 1:
            for place, row in zip(several, _versions([rows[p] for p in several]), strict=True):
                ordered[place] = row
    return ordered


def _versions(rows: list[AnnouncedFile]) -> list[AnnouncedFile]:
    """Each goes before the first that is known to be newer; versions that do not compare keep their places."""
    ordered: list[AnnouncedFile] = []
    for row in rows:
        place = next((i for i, other in enumerate(ordered) if newer(other.file, row.file)), len(ordered))
        ordered.insert(place, row)
    return ordered
