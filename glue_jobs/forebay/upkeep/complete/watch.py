"""Checks beside the batches of the ingest job whether periods are complete. It costs nothing while no file arrives.

In: the files of each batch before its plan is written, the end of the batch, and the passing of time. Out: rows in the table
of periods, and events. A batch does not begin before the periods of its files are open again. A failed check does not end the
job: it is retried.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime, timedelta

from forebay.declaration.service import Service
from forebay.events import Emit
from forebay.landed_file import LandedFile
from forebay.ledger.periods import FeedPeriod, Key, Periods, opened
from forebay.upkeep.complete.events import PeriodReopened, PeriodsNotJudged, PeriodsNotTold
from forebay.upkeep.complete.look import Looker, rules_of
from forebay.upkeep.complete.tell import Send, tell

LOOK_EVERY = timedelta(seconds=20)
TRY_AGAIN = timedelta(minutes=2)


def arriving(
    periods: Periods,
    service: Service,
    files: Iterable[LandedFile],
    to_read: Collection[LandedFile],
    at: datetime,
    emit: Emit,
) -> tuple[set[Key], bool]:
    """Opens the periods of the files that a batch is about to read, and of markers among its files. Returns their keys, and
    whether any of them was complete."""
    rules, seen, read, ids = rules_of(service), dict[Key, FeedPeriod](), set[Key](), {one.file_id for one in to_read}
    for file in (*to_read, *files):
        feed = service.feed_of(file.bucket, file.key)
        rule = rules[feed.name][1] if feed is not None and feed.name in rules else None
        period = rule.period_of(file) if rule is not None else None
        if feed is None or rule is None or period is None:
            continue
        if file.file_id in ids or rule.is_said_by(file):
            one = FeedPeriod(service=service.name, feed=feed.name, period=period.start, ends=period.end, since=at)
            seen[one.key] = one
            if not rule.is_said_by(file):
                read.add(one.key)
    back: list[FeedPeriod] = []
    if seen:
        before = periods.rows()
        periods.change(lambda rows: opened(rows, seen.values(), read, at))
        back = [before[key] for key in read & before.keys() if before[key].complete_at]
        for row in back:
            start = f"{row.period:%Y-%m-%dT%H:%MZ}"
            emit(PeriodReopened(service=row.service, feed=row.feed, period=start, revision=row.revision))
    return set(seen), bool(back)


def look_and_tell(
    looker: Looker, periods: Periods, service: Service, lake: str, wanted: Collection[Key], send: Send, emit: Emit
) -> tuple[dict[Key, datetime], set[Key]]:
    """When to look again, for those that wait for their time; and those at which nobody could look."""
    later, failed = _looked(looker, service, wanted, emit)
    try_to_tell(periods, service.name, lake, send, emit)
    return later, failed


def _looked(
    looker: Looker, service: Service, wanted: Collection[Key], emit: Emit
) -> tuple[dict[Key, datetime], set[Key]]:
    """All at once, which is cheaper. If that fails, feed by feed: a denied bucket delays its own feed alone."""
    try:
        return looker.look(service, wanted), set()
    except Exception as problem:  # whatever is wrong with the bucket, the ledger or their answers
        of_feeds = {feed: [key for key in wanted if key[1] == feed] for _, feed, _ in wanted}
        if len(of_feeds) <= 1:
            feed, error = next(iter(of_feeds), ""), str(problem)
            emit(PeriodsNotJudged(service=service.name, feed=feed, periods=len(wanted), error=error))
            return {}, {*wanted}
    later, failed = dict[Key, datetime](), set[Key]()
    for some in of_feeds.values():
        found, left = _looked(looker, service, some, emit)
        later, failed = later | found, failed | left
    return later, failed


def try_to_tell(periods: Periods, service: str, lake: str, send: Send, emit: Emit) -> None:
    """The table has it: an event that cannot be sent now is sent with a later look."""
    try:
        tell(periods, service, lake, send)
    except Exception as problem:
        emit(PeriodsNotTold(service=service, error=str(problem)))


class Watch:
    """One job's. The batches' thread and the job's use it at the same time."""

    def __init__(
        self,
        lake: str,
        periods: Periods,
        looker: Looker,
        send: Send,
        *,
        emit: Emit,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._lake, self._periods, self._looker, self._send = lake, periods, looker, send
        self._emit, self._clock, self._lock = emit, clock, threading.Lock()
        self._service: Service | None = None
        self._touched, self._due = set[Key](), dict[Key, datetime]()
        self._next = clock()

    def arriving(self, service: Service, files: Collection[LandedFile], to_read: Collection[LandedFile]) -> None:
        """Must be called before a batch writes its plan, and again before its first commit."""
        if rules_of(service):
            keys, back = arriving(self._periods, service, files, to_read, self._clock(), self._emit)
            if back:
                try_to_tell(self._periods, service.name, self._lake, self._send, self._emit)
            with self._lock:
                self._service = service
                self._touched |= keys

    def batch_ended(self) -> None:
        with self._lock:
            self._due |= dict.fromkeys(self._touched, self._clock())
            self._touched = set()

    def begin(self, service: Service) -> None:
        """Begins with the periods that an earlier job left open."""
        if rules_of(service):
            rows = [one for one in self._periods.rows().values() if not (one.complete_at and one.told)]
            with self._lock:
                self._service = service
                self._due |= {one.key: self._clock() for one in rows if one.service == service.name}

    def look(self, *, at_once: bool = False) -> None:
        """Checks the open periods. It may be called at any rate: between two checks it does nothing."""
        now = self._clock()
        with self._lock:
            due = {key for key, at in self._due.items() if at <= now} if at_once or now >= self._next else set()
            self._due = {key: at for key, at in self._due.items() if key not in due}
            service, self._next = self._service, now + LOOK_EVERY if due else self._next
        if not due or service is None:
            return
        later, failed = look_and_tell(self._looker, self._periods, service, self._lake, due, self._send, self._emit)
        with self._lock:
            self._due = {**later, **dict.fromkeys(failed, now + TRY_AGAIN), **self._due}
