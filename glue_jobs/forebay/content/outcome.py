"""The ends of a file, and the reasons to refuse a record or file: the vocabulary of this room, as values.

An `Unread` file gives no record at all: nothing of it lands, so a fixed copy doubles nothing.
A `Refused` record is one of a file whose other records land.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

__all__ = [
    "ERASED",
    "FILE_REASONS",
    "POISON",
    "RECORD_REASONS",
    "FileReason",
    "NotTaken",
    "ReadOutcome",
    "RecordReason",
    "Refused",
    "TooMany",
    "Unread",
    "kept_text",
]

ERASED = "erased"
"""The problem of a record of an erased person: nothing of it is kept, and no person must look at it."""

ReadOutcome = Literal[
    "loaded",  # it held records, or refused ones
    "empty",  # it held none
    "missing",  # it is not there: deleted since, or a delete marker
    "changed",  # it is there, but it is no longer the version that was announced; without versioning that one is gone
    "denied",  # we may not read it, or its key
    "unavailable",  # S3 did not give it, or not yet (an archived object); nothing is known against the file
    "unreadable",  # it was fetched, and cannot be taken; the reason says why
    "forgotten",  # it was not fetched, since an operator wants none of its rows
]

FileReason = Literal[
    "no-such-key",
    "no-such-version",
    "no-such-bucket",
    "delete-marker",
    "etag-differs",
    "access-denied",
    "key-denied",
    "gave-up",
    "archived",
    "too-large",
    "corrupt-archive",
    "expansion-bomb",
    "too-many-members",
    "too-many-records",
    "too-many-refused",
    "not-json",
    "wrong-format",
    "corrupt-file",
    "bad-header",
    "encrypted",
    "range-refused",
    "refused-by-s3",
    "poison",
]

POISON: FileReason = "poison"
"""Reading the file ended its worker, whatever else the worker read."""

RecordReason = Literal[
    "not-json", "not-an-object", "not-a-row", "not-utf8", "record-too-large", "too-deep", "torn-array"
]

FILE_REASONS: tuple[str, ...] = get_args(FileReason)
RECORD_REASONS: tuple[str, ...] = get_args(RecordReason)


@dataclass(frozen=True, slots=True)
class Unread:
    """A file from which no record lands. `head` is its beginning, where that helps a person."""

    outcome: ReadOutcome
    reason: FileReason
    detail: str = ""
    head: str = ""


class NotTaken(Exception):
    """A file, or a member of it, that cannot be taken."""

    def __init__(self, reason: FileReason, detail: str, head: str = "") -> None:
        super().__init__(detail)
        self.why = Unread("unreadable", reason, detail, head)


class TooMany(Exception):
    """A text has more records, or more that are none, than its limits allow; as a whole it is not read."""

    def __init__(self, reason: FileReason, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class Refused:
    """A record that is not taken; `start` and `end` are its place in the text."""

    start: int
    end: int
    line: int
    reason: RecordReason
    detail: str = ""


def kept_text(raw: bytes | memoryview, cap: int) -> str:
    """The first `cap` bytes as text. Bytes that are not UTF-8 are written as \\xNN, so nothing is guessed."""
    return bytes(raw[:cap]).decode("utf-8", "backslashreplace")
