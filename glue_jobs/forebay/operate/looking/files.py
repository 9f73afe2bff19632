"""The files in the ledger, and the outcome of each.

In: a view of the lake, and a choice. Out: `LedgerFile`s, the newest first. One scan of the ledger's columns: a million files
take well under a second, and no data file of another table is opened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from forebay.address import bucket_and_key
from forebay.content.outcome import POISON
from forebay.declaration.feed import copy_in
from forebay.errors import InvalidConfiguration
from forebay.lake.layout import AFTER_LOAD, LEDGER
from forebay.landed_file import LandedFile, is_address
from forebay.ledger.entry import (
    IGNORED,
    NOT_FINAL,
    SKIPPED_BY_OPERATOR,
    UNREADABLE,
    WANTED_AGAIN,
    dropped_with,
    key_hash,
)
from forebay.ledger.skips import Skip
from forebay.operate.lake_view import LakeView, known_service, like, quoted

URI = "concat('s3://', bucket, '/', key)"
"""In SQL over the ledger."""
HOW_TO_NAME = "write s3://BUCKET/KEY as `forebay files list` shows it"
EARLIEST, LATEST = datetime(1970, 1, 1), datetime(2200, 1, 1)
"""The times that the query engine supports; no batch ended before or after."""
OVERLAP = timedelta(minutes=1)
MOST_AT_ONCE = 100_000


@dataclass(frozen=True, kw_only=True)
class LedgerFile:
    """A row of the ledger: one version of one object."""

    file_id: str
    bucket: str
    key: str
    version_id: str | None
    etag: str | None
    size: int | None
    event_time: datetime | None
    claimed_at: datetime | None
    committed_at: datetime
    service: str | None
    service_version: str | None
    generation: str | None
    batch: int | None
    outcome: str
    reason: str | None
    detail: str | None
    records: int
    written: int
    quarantined: int
    parked: int
    dropped: int
    tables: Mapping[str, int]
    superseded_by: str | None
    sequencer: str | None = None
    tries: int | None = None
    """The number of times that S3 was asked for it; None in rows of earlier versions of this code."""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> LedgerFile:
        known: dict[str, Any] = {name: row.get(name) for name in cls.__dataclass_fields__}
        known["tables"] = dict(row["tables"] or ())
        return cls(**known)

    @property
    def landed(self) -> LandedFile:
        return LandedFile(
            self.bucket, self.key, self.size, self.etag or "", self.version_id, self.sequencer, self.event_time
        )

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/{self.key}"


@dataclass(frozen=True)
class FileChoice:
    """Selects the files that fit every given field; an empty text is none. `key` may be an address; times are those of the
    batch."""

    outcome: str | None = None
    reason: str | None = None
    table: str | None = None
    key: str | None = None
    batch: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    quarantined: bool = False
    service: str | None = None
    generation: str | None = None

    def __post_init__(self) -> None:
        if self.since is not None and self.until is not None and self.until <= self.since:
            raise InvalidConfiguration.one("--until", "is not after --since")

    def where(self) -> str:
        names = ("outcome", "reason", "service", "generation")
        conditions = [f"{name} = {quoted(value)}" for name in names if (value := getattr(self, name))]
        if self.key:
            conditions.append(f"{URI if is_address(self.key) else 'key'} like {like(self.key)}")
        if self.table:
            has, had = f"array_has(map_keys(tables), {quoted(self.table)})", quoted(dropped_with(self.table))
            conditions.append(f"({has} or coalesce(strpos(detail, {had}), 0) > 0)")
        if self.quarantined:
            conditions.append("quarantined > 0")
        if self.batch is not None:
            conditions.append(f"batch = {self.batch:d}")
        for sign, at in ((">=", self.since), ("<", self.until)):
            if at is not None:
                at = min(max(at, EARLIEST.replace(tzinfo=at.tzinfo)), LATEST.replace(tzinfo=at.tzinfo))
                # The day prunes partitions, the time is exact.
                conditions.append(f"day {sign}{'=' if sign == '<' else ''} date '{at.date()}'")
                conditions.append(f"committed_at {sign} timestamp '{at.isoformat()}'")
        return f"where {' and '.join(conditions)}" if conditions else ""


@dataclass(frozen=True)
class Away:
    """`after_load` moved a landed file to a `place`, or deleted it; `gone`: somebody else had deleted it."""

    action: str
    place: str | None
    at: datetime

    def __str__(self) -> str:
        return f"moved to {self.place}" if self.place else "deleted"

    def is_in(self, archives: Iterable[str], file: LedgerFile) -> bool:
        """Whether a replay finds the copy in one of these places."""
        if not self.place:
            return False
        place = bucket_and_key(self.place)
        return any(place == copy_in(archive, file.bucket, file.key, file.file_id) for archive in archives)


def away_of(view: LakeView, files: Iterable[LedgerFile]) -> dict[str, Away]:
    """The files that are no longer in the landing bucket, by id, as maintenance noted. A deleted file that was loaded again
    since was there again, but a moved one was read from its copy."""
    loaded = {file.file_id: file.committed_at for file in files}
    found = dict[str, Away]()
    for row in view.rows_with(AFTER_LOAD, "file_id, action, place, at", "file_id", loaded):
        since = loaded[row["file_id"]]
        stays_away = row["place"] or since is None or row["at"] >= since
        if row["action"] not in ("replaced", "started") and stays_away:
            found[row["file_id"]] = Away(row["action"], row["place"], row["at"])
    return found


def list_files(view: LakeView, choice: FileChoice, *, limit: int) -> list[LedgerFile]:
    sql = f"select * from t {choice.where()} order by committed_at desc, key limit {limit}"
    return [LedgerFile.of(row) for row in view.query(LEDGER, sql)]


def follow(
    view: LakeView, choice: FileChoice, *, last: int, every_s: float, sleep: Callable[[float], None] = time.sleep
) -> Iterator[LedgerFile]:
    """The last files that were loaded, then each new one, for ever. Services commit side by side, so it looks back a minute."""
    newest = list_files(view, choice, limit=last)[::-1]
    seen: dict[tuple[str, datetime | None], None] = {}
    while True:
        for file in newest:
            if (file.file_id, file.committed_at) not in seen:
                seen[file.file_id, file.committed_at] = None
                yield file
        sleep(every_s)
        reached = max((at for _, at in seen if at is not None), default=None)
        seen = {key: None for key in seen if key[1] is None or reached is None or key[1] >= reached - OVERLAP}
        since = reached - OVERLAP if reached is not None else None
        newest = list_files(view, replace(choice, since=since), limit=MOST_AT_ONCE)[::-1]


def of_one_service(files: Iterable[LedgerFile]) -> None:
    """Each service has a queue of its own: `InvalidConfiguration` where files are of several."""
    names = sorted({file.service for file in files if file.service})
    if len(names) > 1:
        raise InvalidConfiguration.one(
            "the chosen files", f"are of the services {', '.join(names)}", "choose one with --of, and its queue"
        )


def retried_files(view: LakeView, *, key: str | None = None, service: str | None = None) -> list[LandedFile]:
    """Files that were not read, for a reason that may have passed, as an announcement names them. With a key also those that
    were ignored: the rule may be another one now."""
    outcomes = [*NOT_FINAL, *([IGNORED] if key else [])]
    conditions = [f"outcome = {quoted(outcome)}" for outcome in outcomes]
    chosen = " or ".join([*conditions, *(f"reason = {quoted(reason)}" for reason in (POISON, WANTED_AGAIN))])
    return _announced(view, chosen, FileChoice(key=key, service=service))


def skipped_files(
    view: LakeView, *, key: str | None = None, file_id: str | None = None, service: str | None = None
) -> list[LandedFile]:
    """Files that an operator skipped, as an announcement names them."""
    chosen = f"reason = {quoted(SKIPPED_BY_OPERATOR)}" + (f" and file_id = {quoted(file_id)}" if file_id else "")
    return _announced(view, chosen, FileChoice(key=key, service=service))


def refused_by(view: LakeView, skip: Skip) -> list[str]:
    """The ids of what is skipped, of versions that were refused as a whole."""
    one = f"file_id = {quoted(skip.file_id)}" if skip.file_id else f"{URI} = {quoted(str(skip))}"
    return [file.file_id for file in files_where(view, f"where {one} and outcome = {quoted(UNREADABLE)}")]


def files_where(view: LakeView, where: str) -> list[LedgerFile]:
    return [LedgerFile.of(row) for row in view.query(LEDGER, f"select * from t {where} order by committed_at, key")]


def _announced(view: LakeView, chosen: str, choice: FileChoice) -> list[LandedFile]:
    where = choice.where()
    found = files_where(view, f"{where} {'and' if where else 'where'} ({chosen})")
    if choice.service and not found:
        known_service(view, choice.service)
    of_one_service(found)
    return [file.landed for file in found]


def versions_of(view: LakeView, bucket: str, key: str) -> list[LedgerFile]:
    """Everything that the ledger has of one key."""
    hash_ = key_hash(LandedFile(bucket, key))
    where = f"where key_hash = {hash_} and bucket = {quoted(bucket)} and key = {quoted(key)}"
    return [LedgerFile.of(row) for row in view.query(LEDGER, f"select * from t {where} order by committed_at desc")]
