"""Which landed files are due, by their rows in the ledger.

In: rows of the ledger, the declared rule, and what was done before. Out: `DueFile`s, and how many files wait for their held
records. Pure. A file is due if its outcome is final, its batch ended at least `after_days` ago, and no batch works on its key.
A file with records in the quarantine or among the parked records waits: a replay with new declarations would read it again.
A file waits as well if its rows left with a rollback, or if their table is lost: the object may be their only copy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from forebay.declaration.feed import AfterLoad
from forebay.ledger.entry import PARTLY_REPLAYED, ROLLED_BACK, UNREADABLE, is_final

COLUMNS = (
    *("file_id", "bucket", "key", "version_id", "etag", "size", "committed_at", "outcome", "reason"),
    *("quarantined", "parked", "tables"),
)

Version = tuple[str, str, str]
"""Bucket, key, and the version: equal for all services that loaded it."""


@dataclass(frozen=True, slots=True)
class DueFile:
    """`day` is the partition of its row in the ledger."""

    file_id: str
    bucket: str
    key: str
    version_id: str | None
    etag: str
    size: int
    day: str

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    @property
    def is_versioned(self) -> bool:
        return bool(self.version_id) and self.version_id != "null"


def version_of(row: Mapping[str, Any]) -> Version:
    versioned = row["version_id"] and row["version_id"] != "null"
    return row["bucket"], row["key"], f"v:{row['version_id']}" if versioned else f"e:{row['etag'] or ''}"


def is_clear(row: Mapping[str, Any]) -> bool:
    """Whether nothing that forebay still does by itself, or by a retry, needs the file."""
    return is_final(row["outcome"], row["reason"]) and row["outcome"] != UNREADABLE and not _holds(row)


def due_in(
    rows: Iterable[Mapping[str, Any]],
    rule: AfterLoad,
    *,
    now: datetime,
    done: Collection[str],
    busy: Collection[str],
    needed: Callable[[Mapping[str, Any]], bool],
    day: str,
) -> tuple[list[DueFile], int]:
    """`done` are ids of files that were moved or deleted, `busy` keys of batches that have not ended, and `needed`
    says whether a service of the lake, or a lost table, still needs a file. `day` is the partition of the rows."""
    due, waiting, until = list[DueFile](), 0, now - timedelta(days=rule.after_days)
    for row in rows:
        if row["file_id"] in done or not row["bucket"] or row["committed_at"] > until:
            continue
        if row["outcome"] not in rule.only or not is_final(row["outcome"], row["reason"]):
            continue
        if _holds(row) or row["key"] in busy or needed(row):
            waiting += 1
            continue
        named = {name: row[name] for name in ("file_id", "bucket", "key", "version_id")}
        due.append(DueFile(**named, etag=row["etag"] or "", size=row["size"] or 0, day=day))
    return due, waiting


def _holds(row: Mapping[str, Any]) -> bool:
    """Whether a replay would bring records that are in no table: held ones, those that left with a rollback, and those of a
    table that could not be written."""
    return bool(row["quarantined"] or row["parked"] or row["reason"] in (ROLLED_BACK, PARTLY_REPLAYED))
