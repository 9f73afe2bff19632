"""A bucket that already has years of files: files that the ledger lacks are announced, page by page, beside live traffic.

In: a `Backfill`. Out: its `Progress`. As with reconcile, files are only announced, and the ingest job loads them like any file.
If a key was written several times, each version is announced, the oldest first: the declarations decide which of them count. On
request, only the current version of each key is. A page's progress is durable once the page is announced, so an interrupted
backfill resumes, at the beginning of a key. The ledger recognizes a page that is announced twice. Memory holds a page of the
listing, all versions of its last key, and eight bytes for each file in the ledger.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from forebay.aws.announce import announce_paced
from forebay.lake.layout import LEDGER, backfill_of, table_path
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.upkeep.reconcile.inventory import open_inventory
from forebay.upkeep.reconcile.known import known_since, unknown
from forebay.upkeep.reconcile.landed import Page, files_in, last_key, of_whole_keys

SINCE_EVER, UNTIL_EVER = datetime(1970, 1, 2, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Backfill:
    """Everything under a prefix that was written in a span of time; `rate` is files a second, 0 means unlimited. While more
    than `most_waiting` messages are in the queue it waits, so that live files are not delayed. With `inventory`, a report's
    manifest, nothing is listed. `services`: their files count as loaded; the queue belongs to the first one. `without_deleted`:
    versions that a deletion followed are left out. `only_current`: all but the current version of each key are."""

    lake: str
    bucket: str
    prefix: str
    queue_url: str
    since: datetime | None = None
    until: datetime | None = None
    rate: float = 0
    most_waiting: int = 200
    inventory: str = ""
    services: tuple[str, ...] = ()
    without_deleted: bool = False
    only_current: bool = False

    @property
    def name(self) -> str:
        """The same for the same files; how quickly they are announced does not matter."""
        parts = [self.bucket, self.prefix, str(self.since), str(self.until), *self.services]
        parts += [self.inventory] if self.inventory else []
        parts += ["without-deleted"] if self.without_deleted else []
        parts += ["only-current"] if self.only_current else []
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """`marker` is where the listing of the bucket resumes: after a key; in a report, at a data file and a row. `not_current`
    counts announced versions that were overwritten or deleted since."""

    looked_at: int = 0
    known: int = 0
    announced: int = 0
    not_current: int = 0
    bytes: int = 0
    marker: tuple[str, str] = ("", "")
    done: bool = False
    at: str = ""


@dataclass(frozen=True)
class Waits:
    """The queue is full enough; the backfill resumes when it is shorter."""

    messages: int


Tell = Callable[[Progress | Waits], None]


def progress_of(wanted: Backfill) -> Progress:
    """How far an earlier run came."""
    text = open_objects(backfill_of(wanted.lake)).read(f"{wanted.name}.json")
    if text is None:
        return Progress()
    stored = json.loads(text)
    return Progress(**{**stored, "marker": tuple(stored["marker"])})


def backfill(
    wanted: Backfill,
    *,
    s3: Any,
    sqs: Any,
    tell: Tell,
    dry_run: bool = False,
    again: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> Progress:
    """Resumes an interrupted run, unless it must begin `again`. A dry run counts everything, announces nothing and leaves no
    trace."""
    store = open_objects(backfill_of(wanted.lake))
    progress = Progress() if again or dry_run else progress_of(wanted)
    if progress.done:
        return progress
    known = known_since(open_objects(table_path(wanted.lake, LEDGER)), SINCE_EVER, wanted.services)
    for page, marker in _pages(wanted, progress.marker, s3):
        files = _oldest_first(wanted, page)
        fresh = unknown(files, known, wanted.services)
        current = {_version(one) for one in page["Versions"] if one["IsLatest"]}
        if not dry_run:
            paced = announce_paced(
                sqs,
                wanted.queue_url,
                fresh,
                most_waiting=wanted.most_waiting,
                repeat="repeat the command to continue",
                rate=wanted.rate,
                tell=lambda waiting: tell(Waits(waiting)),
                sleep=sleep,
            )
            for announced in paced:
                if announced < len(fresh):  # the page reports all of them
                    tell(replace(progress, announced=progress.announced + announced))
        progress = replace(
            progress,
            looked_at=progress.looked_at + len(page["Versions"]),
            known=progress.known + len(files) - len(fresh),
            announced=progress.announced + len(fresh),
            not_current=progress.not_current + sum((file.key, file.version_id) not in current for file in fresh),
            bytes=progress.bytes + sum(file.size or 0 for file in fresh),
            marker=marker,
            done=marker == ("", ""),
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        if not dry_run:
            store.write(f"{wanted.name}.json", json.dumps(asdict(progress)).encode())
        tell(progress)
    return progress


def _pages(wanted: Backfill, marker: tuple[str, str], s3: Any) -> Iterator[tuple[Page, tuple[str, str]]]:
    """The versions of a page, and where the next one begins: nowhere after the last."""
    if wanted.inventory:
        report = open_inventory(s3, wanted.inventory)
        yield from report.pages(s3, wanted.prefix, marker, only_latest=wanted.without_deleted or wanted.only_current)
        return
    for page in of_whole_keys(_listed(wanted, marker, s3)):
        if not page["IsTruncated"]:
            yield page, ("", "")
        elif (last := last_key(page)) is not None:
            yield page, (last, "")


def _listed(wanted: Backfill, marker: tuple[str, str], s3: Any) -> Iterator[Page]:
    more: Page = {"IsTruncated": True}
    while more["IsTruncated"]:
        after = {name: value for name, value in zip(("KeyMarker", "VersionIdMarker"), marker, strict=True) if value}
        more = s3.list_object_versions(Bucket=wanted.bucket, Prefix=wanted.prefix, **after)
        marker = more.get("NextKeyMarker", ""), more.get("NextVersionIdMarker", "")
        yield more


def _oldest_first(wanted: Backfill, page: Page) -> list[LandedFile]:
    """S3 lists the newest version of a key first."""
    span = wanted.since or SINCE_EVER, wanted.until or UNTIL_EVER
    if wanted.only_current:
        page = page | {"Versions": [one for one in page["Versions"] if one["IsLatest"]]}
    files = [*files_in(wanted.bucket, page, *span, without_deleted=wanted.without_deleted)]
    files.reverse()
    return sorted(files, key=lambda file: file.key)


def _version(one: Page) -> tuple[str, str | None]:
    version = one.get("VersionId")
    return one["Key"], version if version != "null" else None
