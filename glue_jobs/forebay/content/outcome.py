"""The possible ends of a file, and the reasons to refuse a record or file: the vocabulary of this room, as values.

An `Unread` file yields no records: nothing of it lands, so a fixed copy duplicates nothing. A `Refused` record belongs to a
file whose other records land.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

ERASED = "erased"
"""The problem of a record of an erased person: nothing of it is kept, and no person must look at it."""

ReadOutcome = Literal[
    "loaded",  # it held records, or refused ones
    "empty",  # it held none
    "missing",  # it is not there: deleted since, or a delete marker
    "changed",  # it is there, but it is no longer the version that was announced; without versioning that one is gone
    "denied",  # the job may not read it, or its key
    "unavailable",  # S3 did not give it, or not yet (an archived object); nothing is known against the file
    "unreadable",  # it was fetched, and cannot be taken; the reason says why
    "forgotten",  # it was not fetched, since an operator wants none of its rows
    "deleted",  # it is the deletion of its key, and has no bytes
]

FileReason = Literal[
    "no-such-key",  # S3 no longer has an object of this key
    "no-such-version",  # S3 no longer has this version
    "no-such-bucket",  # there is no such bucket
    "delete-marker",  # the version is a delete marker
    "etag-differs",  # the object was overwritten before the job read it, in a bucket without versions
    "access-denied",  # the job may not read the object
    "key-denied",  # the job may not use the object's KMS key
    "gave-up",  # S3 did not answer, even after several attempts
    "archived",  # the object is in an archive tier
    "too-large",  # it is larger than a file may be, or takes more memory than a task has
    "corrupt-archive",  # it cannot be unpacked: it is torn, or not what its name says
    "expansion-bomb",  # it expands to far more than a file may be
    "too-many-members",  # the zip archive has too many members
    "too-many-records",  # it has more records than a file may have
    "too-many-refused",  # more of its records are refused than a file may have
    "not-json",  # nothing in it is JSON
    "wrong-format",  # it is of another format than declared, or of one that is not read
    "corrupt-file",  # it is torn, or breaks the rules of its format
    "bad-header",  # its header names a column twice, has too many or too long names, or is not UTF-8
    "encrypted",  # it, or a member of it, is encrypted
    "range-refused",  # S3 has fewer bytes of it than it announced
    "refused-by-s3",  # S3 refused the request for another reason
    "poison",  # reading it ended a worker, even without other files
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
    """A text has more records, or more refused parts, than its limits allow. The whole text is refused."""

    def __init__(self, reason: FileReason, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True, slots=True)
class Refused:
    """A refused record; `start` and `end` are its place in the text."""

    start: int
    end: int
    line: int
    reason: RecordReason
    detail: str = ""


def kept_text(raw: bytes | memoryview, cap: int) -> str:
    """The first `cap` bytes as text. Bytes that are not UTF-8 are written as \\xNN, so nothing is guessed."""
    return bytes(raw[:cap]).decode("utf-8", "backslashreplace")
