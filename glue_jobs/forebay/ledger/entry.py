"""One row of the ledger: a file, its outcome, and the counts that must add up.

An entry checks its own sum when it is made: records = written + quarantined + parked + dropped. A sum that does not hold is a
bug in forebay that would lose data silently. So it halts the batch before the file is marked as done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from forebay.content.outcome import POISON
from forebay.counted import agreed, counted
from forebay.errors import Halt
from forebay.lake.layout import PARKED, QUARANTINE
from forebay.landed_file import LandedFile

Outcome = Literal[
    "loaded",  # its records are in tables, refused, parked or dropped, and each is counted
    "empty",  # it held no record
    "missing",  # S3 no longer had this version when a batch read it
    "denied",  # the job may not read it
    "unavailable",  # S3 did not return it, even after several attempts
    "unreadable",  # it could not be read; the quarantine has the whole file
    "duplicate",  # the same bytes were already loaded under this key
    "skipped",  # an operator left it out, or `overwritten = "ignore"` did
    "superseded",  # a later version of the key, or its deletion, replaced it
    "ignored",  # it is not data, or it belongs to no feed
    "replay",  # an operator wants it read again; until then, its rows stay
    "forget",  # an operator wants its rows removed; until then, they stay
    "forgotten",  # an operator removed its rows; only an operator restores them
    "deleted",  # it is the deletion of its key: the rows of earlier versions left
]

DENIED: Outcome = "denied"
REPLAY: Outcome = "replay"
FORGET: Outcome = "forget"
FORGOTTEN: Outcome = "forgotten"
UNREADABLE: Outcome = "unreadable"
DELETED: Outcome = "deleted"
IGNORED: Outcome = "ignored"
NOT_FINAL: tuple[Outcome, ...] = ("missing", "denied", "unavailable", REPLAY, FORGET)
"""These can change without anything being wrong with the file: whoever announces it again has it read again, and its row
becomes what it ends as then. All other outcomes are final, except with one of `NOT_FINAL_REASONS`."""

SKIPPED_BY_OPERATOR = "by-operator"

ROLLED_BACK = "rolled-back"
"""Rows of the file left with a rollback of their table."""

TABLE_DROPPED = "table-dropped"
"""Rows of the file left with their table, for good."""

WANTED_AGAIN = "wanted-again"
"""An operator wants a file read again that was forgotten or could not be read. No batch has read it yet."""

PARTLY_REPLAYED = "partly-replayed"
"""A table has the rows of an earlier reading of the file: it could not be written when the file was read again, or a rollback
brought them back, and records of the file are held. `detail` names it, up to a semicolon."""

PUT_AGAIN = "put-again"
"""A superseded file whose key got its bytes again. It is read once the rows have left that a table still has of it."""

NOT_FINAL_REASONS: tuple[str, ...] = (POISON, SKIPPED_BY_OPERATOR, WANTED_AGAIN, PUT_AGAIN)
"""Better code may read a file that ended our workers, an operator may undo a command, and a table may be written again."""

WITHHELD: tuple[Outcome, ...] = ("denied", "unavailable")
"""Among those, the outcomes that the job itself retries. A missing file returns with its own announcement."""

HELD = {QUARANTINE: "quarantined", PARKED: "parked"}
"""The tables of records that are kept aside, and the ledger's column that counts those of each file."""

COLUMNS = (
    "day date, file_id string, file_hash long, key_hash long, bucket string, key string, version_id string, etag string, "
    "size long, event_time timestamp, claimed_at timestamp, committed_at timestamp, service string, service_version string, "
    "generation string, batch long, outcome string, reason string, detail string, records long, written long, "
    "quarantined long, parked long, dropped long, tables map<string, long>, sequencer string, superseded_by string, "
    "tries long, content_hash string"
)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The outcome of one file."""

    file: LandedFile
    outcome: Outcome
    reason: str | None = None
    detail: str | None = None
    records: int = 0
    quarantined: int = 0
    parked: int = 0
    dropped: int = 0
    tables: dict[str, int] = field(default_factory=dict)
    tries: int = 1
    """The number of batches in which S3 was asked for the file. The row of a file that waits counts its announcements instead
    (`PUT_AGAIN`)."""
    content_hash: str = ""
    """The hash of the bytes that were read; empty if the file did not land. After a space follow the hashes of the object's
    rewritten bytes."""
    superseded_by: str | None = None
    """The version that took its place: of one that was not read, or that a rollback brought back."""

    def __post_init__(self) -> None:
        accounted = self.written + self.quarantined + self.parked + self.dropped
        if self.records != accounted:
            read, found = counted(self.records, "record", "was"), f"{accounted:,} {agreed(accounted, 'is')}"
            raise Halt(
                f"{self.file.uri}: {read} read, but {found} accounted for "
                f"({self.written} written, {self.quarantined} quarantined, {self.parked} parked, {self.dropped} dropped); "
                "nothing of this batch is marked as done"
            )

    @property
    def written(self) -> int:
        return sum(self.tables.values())

    def row(self, **of_the_batch: Any) -> dict[str, Any]:
        """The row, as `COLUMNS` names it; `of_the_batch` are the columns that all files of a batch share."""
        committed_at: datetime = of_the_batch["committed_at"]
        return {
            "day": committed_at.date(),
            "file_id": self.file.file_id,
            "file_hash": file_hash(self.file),
            "key_hash": key_hash(self.file),
            "bucket": self.file.bucket,
            "key": self.file.key,
            "version_id": self.file.version_id,
            "etag": self.file.etag,
            "size": self.file.size,
            "event_time": self.file.event_time,
            "outcome": self.outcome,
            "reason": self.reason,
            "detail": self.detail,
            "records": self.records,
            "written": self.written,
            "quarantined": self.quarantined,
            "parked": self.parked,
            "dropped": self.dropped,
            "tables": self.tables,
            "sequencer": self.file.sequencer,
            "superseded_by": self.superseded_by,
            "tries": self.tries,
            "content_hash": self.content_hash or None,
            **of_the_batch,
        }


def is_final(outcome: str, reason: str | None) -> bool:
    return outcome not in NOT_FINAL and reason not in NOT_FINAL_REASONS


def tables_of_earlier_reading(reason: str | None, detail: str | None) -> frozenset[str]:
    """Those that had rows of a reading before the last one, by the ledger's row of the file."""
    names = f"{detail}".partition("; ")[0].split(", ") if reason == PARTLY_REPLAYED else ()
    return frozenset(names)


def detail_with(tables: Iterable[str], reason: str | None, detail: str | None) -> str | None:
    """The detail of a file, with these tables of an earlier reading in the place of those that it named."""
    rest = f"{detail}".partition("; ")[2] if reason == PARTLY_REPLAYED else detail
    return "; ".join(filter(None, [", ".join(sorted(tables)), rest])) or None


def dropped_with(table: str) -> str:
    """The part of a detail that names a dropped table, in which the file had rows."""
    return f"table {table} dropped"


def as_known(file: LandedFile, row: Mapping[str, Any]) -> LandedFile:
    """The file with the id that its row has: services of one lake have ids of their own (see `services`)."""
    return file if file.file_id == row["file_id"] else replace(file, service=row["service"])


def hashes_in(content_hash: str | None) -> frozenset[str]:
    """All hashes of bytes by which a row of the ledger knows its file."""
    return frozenset((content_hash or "").split())


def file_hash(file: LandedFile) -> int:
    """Eight bytes of the file id, as a signed long: small enough to keep ten million of them in memory."""
    return int.from_bytes(bytes.fromhex(file.file_id[:16]), "big", signed=True)


def key_hash(file: LandedFile) -> int:
    """The same for the key without its version: files that share it are versions of one object."""
    return file_hash(LandedFile(file.bucket, file.key))
