"""Checks whether periods are complete: lists their folders, reads the ledger, and stores the answer.

In: a lake, a service, the landing buckets, and periods. Out: their rows, with the answer. A period is marked before its files
are listed. The answer is kept only if no batch removed the mark: such a batch has a file that the listing may lack.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import Any

from botocore.exceptions import ClientError

from forebay.declaration.complete import Complete, Period
from forebay.declaration.feed import Feed
from forebay.declaration.service import Service
from forebay.events import Emit
from forebay.lake.layout import COMPLETE, LEDGER, skips_of, table_path
from forebay.lake.objects import open_objects
from forebay.lake.rows import python_rows
from forebay.landed_file import LandedFile
from forebay.ledger.data_files import data_files, rows_of
from forebay.ledger.ignored import why_ignored
from forebay.ledger.periods import FeedPeriod, Key, Periods
from forebay.ledger.services import as_services_know
from forebay.ledger.skips import Skips
from forebay.upkeep.accounts.open_batches import open_batches
from forebay.upkeep.complete.events import PeriodCompleted
from forebay.upkeep.complete.judge import Judgement, Known, folder_uri, judge
from forebay.upkeep.reconcile.landed import landed_files

EVER = (datetime(1970, 1, 2, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))
CLOCKS_DIFFER = timedelta(days=1)
FILE = ("file_id", "bucket", "key", "etag", "version_id", "size", "event_time")
COLUMNS = (*FILE, "outcome", "reason", "records", "written", "quarantined", "parked")
MOST_OF_A_MANIFEST = 1 << 20
"""Bytes. It has two numbers, and perhaps a list of files."""
NO_BUCKET = "needs the name of its bucket: write `bucket` in the feed, or start the job with --landing-buckets"


def periods_of(lake: str) -> Periods:
    return Periods(open_objects(table_path(lake, COMPLETE)))


def rules_of(service: Service) -> dict[str, tuple[Feed, Complete]]:
    """The rules of the feeds that declare when a period is complete, by name."""
    return {feed.name: (feed, feed.complete) for feed in service.all_feeds if feed.complete is not None}


@dataclass(frozen=True)
class Landing:
    """The objects of the landing buckets. Nobody is asked before there is a period to look at."""

    s3_client: Callable[[], Any]
    buckets: Sequence[str]

    @cached_property
    def s3(self) -> Any:
        return self.s3_client()

    def files(self, feed: Feed, rule: Complete, period: Period, *, without_deleted: bool) -> list[LandedFile]:
        """All versions of all objects that may be of this period. Perhaps without those that a deletion followed."""
        found: list[LandedFile] = []
        for bucket in [feed.bucket] if feed.bucket else self.buckets:
            prefixes, span = [feed.prefix], (period.start - CLOCKS_DIFFER, period.end + CLOCKS_DIFFER)
            if rule.folder:
                prefixes, span = rule.prefixes(period, partial(self._folders, bucket)), EVER
            pages = landed_files(
                self.s3, bucket, prefixes, since=span[0], until=span[1], say=list, without_deleted=without_deleted
            )
            found += [one for page in pages for one in page if rule.may_be_in(period, one)]
        return found

    def content(self, file: LandedFile) -> bytes | str | None:
        """None if it was deleted: its earlier versions are listed, too. A text is S3's reason not to give it."""
        try:
            content: bytes = self.s3.get_object(Bucket=file.bucket, Key=file.key)["Body"].read(MOST_OF_A_MANIFEST)
        except ClientError as refused:
            code: str = refused.response["Error"]["Code"]
            return None if code == "NoSuchKey" else code
        return content

    def _folders(self, bucket: str, prefix: str) -> list[str]:
        pages = self.s3.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
        return [found["Prefix"] for page in pages for found in page.get("CommonPrefixes", ())]


class Looker:
    """The checks of one lake, and its landing buckets."""

    def __init__(
        self,
        lake: str,
        periods: Periods,
        landing: Landing,
        *,
        emit: Emit,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._lake, self._periods, self._landing, self._emit, self._clock = lake, periods, landing, emit, clock

    def look(self, service: Service, wanted: Collection[Key]) -> dict[Key, datetime]:
        """Judges those that are open, and says when to look again at those that only wait for their time."""
        rules, mark = rules_of(service), str(uuid.uuid4())
        meant = {key for key in wanted if key[0] == service.name and key[1] in rules}
        self._periods.change(
            lambda rows: [
                replace(one, check=mark)
                for key in meant
                if (one := rows.get(key)) and not one.complete_at and rules[key[1]][1].has(_period(one))
            ]
        )
        marked = [one for one in self._periods.rows().values() if one.check == mark]
        judged = dict(zip((one.key for one in marked), self._judged(service, rules, marked), strict=True))
        self._periods.change(lambda rows: self._answers(rows, mark, judged))
        for one in self._periods.rows().values():
            if one.key in judged and one.complete_at and one.check == "" and not judged[one.key].why:
                self._emit(_completed(one))
        return {key: found.not_before for key, found in judged.items() if found.not_before}

    def _answers(self, rows: Mapping[Key, FeedPeriod], mark: str, judged: Mapping[Key, Judgement]) -> list[FeedPeriod]:
        return [
            _answered(rows[key], found, self._clock())
            for key, found in judged.items()
            if key in rows and rows[key].check == mark
        ]

    def _judged(
        self, service: Service, rules: Mapping[str, tuple[Feed, Complete]], marked: Sequence[FeedPeriod]
    ) -> list[Judgement]:
        """The ledger is read only for periods that the bucket alone does not rule out."""
        now = self._clock()
        seen = {one.key: self._seen(service, *rules[one.feed], one) for one in marked}
        first = {one.key: judge(rules[one.feed][1], _period(one), seen[one.key], now) for one in marked}
        left = [one for one in marked if not first[one.key].why]
        if left:
            known = self._with_ledger(service, rules, left, seen)
            first |= {one.key: judge(rules[one.feed][1], _period(one), known[one.key], now) for one in left}
        if not self._landing.buckets:
            nameless = [one for one in marked if not rules[one.feed][0].bucket]
            first |= {one.key: replace(first[one.key], why=NO_BUCKET) for one in nameless}
        return [first[one.key] for one in marked]

    def _seen(self, service: Service, feed: Feed, rule: Complete, one: FeedPeriod) -> Known:
        files = self._landing.files(feed, rule, _period(one), without_deleted=service.on_delete == "forget")
        markers = {folder_uri(rule, file): file for file in files if rule.is_said_by(file)}
        contents = {folder: self._landing.content(file) for folder, file in markers.items()}
        held = {folder: content for folder, content in contents.items() if content is not None}
        return Known(services=_names(service), listed=_data(service, feed, files), markers=held)

    def _with_ledger(
        self,
        service: Service,
        rules: Mapping[str, tuple[Feed, Complete]],
        wanted: Sequence[FeedPeriod],
        seen: Mapping[Key, Known],
    ) -> dict[Key, Known]:
        """Batches that have not ended are asked for first: those that end meanwhile are in the ledger."""
        listed = [file for one in wanted for file in seen[one.key].listed]
        coming = self.on_their_way(service)
        since = min([one.since for one in wanted] + [at for file in listed if (at := file.event_time)])
        rows = {row["file_id"]: row for row in self.ledger_rows(_names(service), since - CLOCKS_DIFFER)}
        of_period = _by_period(service, rules, rows.values())
        timeless = {one for one, known in rows.items() if known["event_time"] is None}
        for one in wanted if timeless else ():
            ids = timeless & _ids_in(_period(one), rules[one.feed][1], seen[one.key].listed, _names(service))
            of_period[one.key] = [*{*of_period.get(one.key, ()), *ids}]
        files = [*listed, *map(_file, (rows[one] for ids in of_period.values() for one in ids))]
        skipped = self.skipped(one for file in files for one in as_services_know(file, _names(service)))
        return {
            one.key: replace(
                seen[one.key],
                rows=rows,
                of_period=of_period.get(one.key, ()),
                skipped=skipped,
                on_their_way=_of(service, *rules[one.feed], one, coming),
            )
            for one in wanted
        }

    def on_their_way(self, service: Service) -> list[LandedFile]:
        """The files of batches that have not ended."""
        return [file for one in open_batches(self._lake) if one.service == service.name for file in one.landed]

    def ledger_rows(self, services: Collection[str], since: datetime) -> list[dict[str, Any]]:
        """The ledger's rows of the batches that ended since that day."""
        found: list[dict[str, Any]] = []
        for parquet in data_files(open_objects(table_path(self._lake, LEDGER)), since=since.date()):
            found += python_rows(rows_of(parquet, services, [*COLUMNS, "service"]))
        return found

    def skipped(self, files: Iterable[LandedFile]) -> Collection[str]:
        """Those that an operator wants left out, by their ids."""
        return Skips(open_objects(skips_of(self._lake))).among(files)


def _names(service: Service) -> tuple[str, ...]:
    return service.name, *service.shares_files_with


def _period(one: FeedPeriod) -> Period:
    return Period(one.period, one.ends)


def _data(service: Service, feed: Feed, files: Iterable[LandedFile]) -> list[LandedFile]:
    return [one for one in files if service.feed_of(one.bucket, one.key) == feed and not why_ignored(service, one)]


def _of(service: Service, feed: Feed, rule: Complete, one: FeedPeriod, files: Iterable[LandedFile]) -> list[str]:
    """The keys of those that may be of this period."""
    return [file.key for file in _data(service, feed, files) if rule.may_be_in(_period(one), file)]


def _by_period(
    service: Service, rules: Mapping[str, tuple[Feed, Complete]], rows: Iterable[Mapping[str, Any]]
) -> dict[Key, list[str]]:
    found: dict[Key, list[str]] = {}
    for row in rows:
        feed = service.feed_of(row["bucket"], row["key"])
        if feed is not None and feed.name in rules and row["service"] in (None, *_names(service)):
            period = rules[feed.name][1].period_of(_file(row))
            if period is not None:
                found.setdefault((service.name, feed.name, period.start), []).append(row["file_id"])
    return found


def _ids_in(period: Period, rule: Complete, listed: Iterable[LandedFile], services: Sequence[str]) -> set[str]:
    """By S3's listing, which has a time for each file. The notification of a file may have had none."""
    files = (file for file in listed if rule.period_of(file) == period)
    return {known.file_id for file in files for known in as_services_know(file, services)}


def _file(row: Mapping[str, Any]) -> LandedFile:
    named = {name: row[name] for name in ("bucket", "key", "size", "version_id", "event_time")}
    return LandedFile(**named, etag=row["etag"] or "")


def _answered(row: FeedPeriod, found: Judgement, at: datetime) -> FeedPeriod:
    changed = {name: value for name, value in asdict(found).items() if name != "not_before" and value is not None}
    if found.why:
        return replace(row, check="", **changed)
    return replace(row, check="", complete_at=at, revision=row.revision + 1, told=False, **changed)


def _completed(one: FeedPeriod) -> PeriodCompleted:
    facts = {name: getattr(one, name) for name in ("service", "feed", "revision", "files", "rows", "refused")}
    return PeriodCompleted(period=str(_period(one)), **facts)
