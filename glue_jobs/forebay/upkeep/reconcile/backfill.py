"""A bucket that already has years of files: files that the ledger lacks are announced, page by page, beside live traffic.

In: a `Backfill`. Out: its `Progress`. As with reconcile, files are only announced, and the ingest job loads them like any file.
If a key was written several times, the newest version is announced. A page's progress is durable once the page is announced, so
an interrupted backfill resumes. The ledger recognizes a page that is announced twice. Memory holds one page of the listing, and
eight bytes for each file in the ledger.
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

SINCE_EVER = datetime(1970, 1, 2, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Backfill:
    """Everything under a prefix that was written in a span of time; `rate` is files a second, 0 means unlimited. While more
    than `most_waiting` messages are in the queue it waits, so that live files are not delayed. With `inventory`, a report's
    manifest, nothing is listed. `services`: their files count as loaded; the queue belongs to the first one."""

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

    @property
    def name(self) -> str:
        """The same for the same files; how quickly they are announced does not matter."""
        parts = [self.bucket, self.prefix, str(self.since), str(self.until), *self.services]
        parts += [self.inventory] if self.inventory else []
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """`marker` is where the listing of the bucket resumes: a key, and a version of it."""

    looked_at: int = 0
    known: int = 0
    announced: int = 0
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
    for files, looked_at, marker in _pages(wanted, progress.marker, s3):
        fresh = unknown(files, known, wanted.services)
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
            looked_at=progress.looked_at + looked_at,
            known=progress.known + len(files) - len(fresh),
            announced=progress.announced + len(fresh),
            bytes=progress.bytes + sum(file.size or 0 for file in fresh),
            marker=marker,
            done=marker == ("", ""),
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        if not dry_run:
            store.write(f"{wanted.name}.json", json.dumps(asdict(progress)).encode())
        tell(progress)
    return progress


def _pages(
    wanted: Backfill, marker: tuple[str, str], s3: Any
) -> Iterator[tuple[list[LandedFile], int, tuple[str, str]]]:
    """The files of a page, how many versions it listed, and where the next one begins: nowhere after the last."""
    if wanted.inventory:
        for files, rows, goes_on in open_inventory(s3, wanted.inventory).pages(s3, wanted.prefix, marker):
            yield [file for file in files if _is_wanted(wanted, file)], rows, goes_on
        return
    while True:
        more = {name: value for name, value in zip(("KeyMarker", "VersionIdMarker"), marker, strict=True) if value}
        page = s3.list_object_versions(Bucket=wanted.bucket, Prefix=wanted.prefix, **more)
        versions = page.get("Versions", [])
        marker = (
            (page.get("NextKeyMarker", ""), page.get("NextVersionIdMarker", "")) if page["IsTruncated"] else ("", "")
        )
        yield [file for one in versions if (file := _file(wanted, one)) is not None], len(versions), marker
        if marker == ("", ""):
            return


def _file(wanted: Backfill, one: dict[str, Any]) -> LandedFile | None:
    """None of an older version, and of one that was written at another time."""
    written = one["LastModified"]
    if not one["IsLatest"]:
        return None
    version = one.get("VersionId")
    file = LandedFile(
        wanted.bucket,
        one["Key"],
        one["Size"],
        one["ETag"].strip('"'),
        version if version != "null" else None,
        event_time=written,
    )
    return file if _is_wanted(wanted, file) else None


def _is_wanted(wanted: Backfill, file: LandedFile) -> bool:
    written = file.event_time
    assert written is not None
    return (not wanted.since or written >= wanted.since) and (not wanted.until or written < wanted.until)
