"""The intake: from the queue, batch by batch, through crashes. All of the source but Spark.

A batch is a number. `next_batch` gives the next one, after its manifest is durable, or the last one again where there is
nothing new; `rows` gives its files, today or after any crash; `resume` gives the position of an earlier run.

Each file arrives once, because:

* A manifest past the one that Spark remembers is a batch that Spark never learnt of, because the driver died in between. It
  becomes the next batch unchanged, at once, without waiting for its messages to be redelivered.
* Redeliveries are known by the manifests that are retained. A manifest is a promise that its rows will be loaded, so a
  repeat may be deleted as soon as it shows up.
* Messages of a batch are deleted when Spark asks for the next one. Spark asks only when the last batch is in its commit log.
  The exception is a question before Spark has said where it was, as with a new checkpoint. Then nothing is known to be
  committed, and nothing old is deleted on that occasion.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import groupby

from botocore.exceptions import BotoCoreError, ClientError

from forebay.errors import ForebayError, InvalidConfiguration
from forebay.events import Emit
from forebay.lake.objects import Objects
from forebay.source.deletion import Deletions
from forebay.source.drain import Drain, Stillness
from forebay.source.events import ManifestsNotCleaned, QueuePolled
from forebay.source.gather import Gathered, Gatherer, Position
from forebay.source.kept import KeptMessages, return_after_s
from forebay.source.manifest import AnnouncedFile, Manifest, Manifests, RecentFiles
from forebay.source.options import SourceOptions
from forebay.source.poll import Poller
from forebay.source.queue import Depth, Message, Queue, Receipt
from forebay.source.visibility import Visibility

_LAST_WORDS_S = 30.0
_QUIET_S = 60.0


class Intake:
    """One stream's state on the driver. Its methods are called by one thread, as Spark does."""

    def __init__(
        self,
        options: SourceOptions,
        queue: Queue,
        store: Objects,
        *,
        emit: Emit,
        driver_lives: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._options, self._queue, self._emit, self._clock = options, queue, emit, clock
        self._manifests, self._taken = Manifests(store), RecentFiles()
        self._visibility = Visibility(queue, every_s=options.visibility_timeout_s / 3)
        parallelism = options.fetch_parallelism
        # One pool for receiving and deleting, so that no more requests run at once than the user said. Deletions wait for
        # nothing and come first in line.
        self._requests = ThreadPoolExecutor(parallelism, thread_name_prefix="forebay-request")
        self._cleaning = ThreadPoolExecutor(1, thread_name_prefix="forebay-clean")
        self._deletions = Deletions(queue, self._requests, done=self._visibility.let_go, sleep=sleep, chance=chance)
        kept = KeptMessages(store, queue.url)
        self._gatherer = Gatherer(
            options,
            queue,
            Poller(queue, self._requests, kept, options.only, parallelism=parallelism, clock=clock),
            self._manifests,
            self._taken,
            self._visibility,
            self._requests,
            driver_lives=driver_lives,
            sleep=sleep,
            chance=chance,
        )
        self._sleep, self._look_at = sleep, clock()
        self._drain = Drain(store)
        self._stillness = Stillness(cap_s=options.drain_cap_s, clock=clock) if options.drain else None
        self._drained = False
        self._loaded = False
        self._knows_what_is_committed = False
        self._last = 0  # the last batch that Spark learned of
        self._committed = 0
        self._unknown_to_spark: list[int] = []
        self._receipts: dict[int, Sequence[Receipt]] = {}  # of batches that are not known to be committed
        self._newest: Manifest | None = None
        self._numbers: set[int] = set()  # of the manifests in the store
        self._numbers_lock = threading.Lock()
        self._told_at = -_QUIET_S

    def resume(self, last: int) -> None:
        """Spark remembers `last`. It may be about to run it once more, or not."""
        if not self._loaded:
            self._load(last)
        self._knows_what_is_committed = True

    def next_batch(self) -> int:
        """The number of the next batch, or of the last one where there is nothing new. Raises `InvalidConfiguration` or `Halt`
        when the queue or the store is out of reach for good; nothing has been deleted because of it."""
        if not self._loaded:
            self._load(None)
        if self._knows_what_is_committed:
            self.committed(self._last)
        self._deletions.check()
        if self._unknown_to_spark:
            self._last = self._unknown_to_spark.pop(0)
        elif not self._drained and not self._is_early():
            self._take_from_queue()
        self._knows_what_is_committed = True
        return self._last

    def rows(self, after: int, upto: int) -> list[tuple[AnnouncedFile, ...]]:
        """The files of the batches after `after` up to `upto`, batch by batch; always the same for the same numbers."""
        manifests = [self._manifest(number) for number in range(after + 1, upto + 1)]
        foreign = [manifest.number for manifest in manifests if after == 0 and manifest.committed > 0]
        if foreign:
            raise InvalidConfiguration.one(
                "manifestPath",
                f"{self._manifests.path} belongs to an earlier checkpoint, which committed batches before {foreign[0]}",
                "restore that checkpoint; or delete both, and the queue redelivers what was not committed",
            )
        return [manifest.rows for manifest in manifests]

    def committed(self, number: int) -> None:
        """The batches up to `number` are in their tables: their messages may go. Harmless when run twice."""
        for done in sorted(n for n in self._receipts if n <= number):
            self._deletions.delete(self._receipts.pop(done))
        if number > self._committed:
            self._committed = number
            with self._numbers_lock:
                old = self._manifests.outdated(self._numbers, number)
            for batch in old:
                self._taken.forget(batch)
            if old:
                self._cleaning.submit(self._clean, old)

    def close(self) -> None:
        """Lets go of the messages that are in no batch, so that another run need not wait for them. May never be
        called."""
        self._gatherer.close()
        self._visibility.close()
        self._deletions.close()
        for pool in (self._requests, self._cleaning):
            pool.shutdown(wait=False)

    def flush(self, timeout_s: float = _LAST_WORDS_S) -> bool:
        """Waits for the deletions under way."""
        return self._deletions.flush(timeout_s)

    def _load(self, last: int | None) -> None:
        """Reads what earlier runs left. `last` None: Spark has not said what it remembers, perhaps nothing."""
        numbers = self._manifests.numbers()
        self._last = last if last is not None else max(numbers, default=0)
        self._unknown_to_spark = [number for number in numbers if number > self._last]
        # An earlier run may have died while it deleted the messages of a batch; the one before may not be through
        # either.
        recent = [self._last - 1, self._last, *self._unknown_to_spark]
        for manifest in self._manifests.read_all(numbers, self._requests):
            self._taken.remember(manifest)
            if manifest.number in recent:
                self._receipts[manifest.number] = manifest.receipts
                self._visibility.hold(manifest.receipts)
        self._numbers = set(numbers)
        self._loaded = True

    def _manifest(self, number: int) -> Manifest:
        newest = self._newest
        return newest if newest is not None and newest.number == number else self._manifests.read(number)

    def _is_early(self) -> bool:
        """Waits for a part of the time until the next look, so that whoever stops the stream need not wait for all of it."""
        if (left := self._look_at - self._clock()) > 0:
            self._sleep(min(left, self._wait_s or 1))
        return self._clock() < self._look_at

    def _next_look(self, started: float, gathered: Gathered) -> float:
        """At once while there is more than a batch holds: then the cluster sets the pace, and not the clock."""
        options = self._options
        more = not gathered.admission.room
        if options.every_s and gathered.manifest and not more:
            more = self._depth().visible >= options.max_files_per_batch
        return started if more else started + options.every_s

    def _take_from_queue(self) -> None:
        started = self._clock()
        time_is_up = self._stillness is not None and self._stillness.time_is_up
        gathered = self._gatherer.gather(self._position, wait_s=self._wait_s, ask=not time_is_up)
        polled = gathered.polled
        if gathered.manifest is not None:
            self._know(gathered.manifest)
            if self._knows_what_is_committed and not gathered.admission.room and not time_is_up:
                self._gatherer.go_ahead(self._position)
        self._look_at = self._next_look(started, gathered)
        self._deletions.delete(polled.finished)
        self._return(polled.refused)
        self._tell(gathered, self._clock() - started)
        if self._stillness and gathered.manifest is None:
            nothing_new = polled.received == len(polled.refused) and not polled.kept
            self._stillness.seen(empty=nothing_new and polled.trouble is None)
            self._end_drain()

    @property
    def _wait_s(self) -> int:
        # Only a long poll asks all of SQS's servers, so only that can say that a queue is empty.
        return max(1, self._options.wait_s) if self._stillness else self._options.wait_s

    @property
    def _position(self) -> Position:
        with self._numbers_lock:
            number = max(self._numbers, default=0)
        return Position(max(self._last, number) + 1, self._committed)

    def _know(self, manifest: Manifest) -> None:
        """A manifest has become the next batch."""
        with self._numbers_lock:
            self._numbers.add(manifest.number)
        self._taken.remember(manifest)
        self._receipts[manifest.number] = manifest.receipts
        self._newest, self._last = manifest, manifest.number

    def _return(self, refused: Sequence[Message]) -> None:
        """Unreadable messages go back to the queue, with a delay."""
        for wait_s, messages in groupby(sorted(refused, key=_return_s), key=_return_s):
            receipts = [message.receipt for message in messages]
            self._queue.hold(receipts, self._requests, for_s=wait_s)
            if self._stillness:
                self._stillness.returned(receipts, after_s=wait_s)

    def _end_drain(self) -> None:
        reason = self._stillness.reason(self._depth) if self._stillness else None
        if reason and self.flush():
            if self._stillness and (kept := self._stillness.kept()):
                self._queue.hold(kept, self._requests, for_s=0)  # the next drain need not wait until they show
            self._drain.mark(reason)
            self._drained = True

    def _depth(self) -> Depth:
        try:
            return self._queue.depth()
        except (ClientError, BotoCoreError) as error:
            trouble = self._queue.trouble("GetQueueAttributes", error)
            if trouble.kind in ("gone", "denied"):
                raise trouble.as_error() from error
            return Depth(visible=1, in_flight=0, delayed=0)  # not known, so not empty; asked again with the next look

    def _clean(self, old: Sequence[int]) -> None:
        try:
            self._manifests.clean(old)
        except (ForebayError, OSError) as problem:
            self._emit(ManifestsNotCleaned(path=self._manifests.path, problem=str(problem)))
            return
        with self._numbers_lock:
            self._numbers.difference_update(old)

    def _tell(self, gathered: Gathered, took_s: float) -> None:
        polled, admission = gathered.polled, gathered.admission
        gone = self._deletions.take_count()
        now = self._clock()
        if not (polled.received or admission.receipts or gone.failed) and now - self._told_at < _QUIET_S:
            return
        self._told_at = now
        rows = admission.rows
        oldest = min((row.sent_at for row in rows), default=None)
        self._emit(
            QueuePolled(
                service=self._options.service,
                queue=self._queue.url,
                batch=self._last,
                received=polled.received,
                files=len(rows),
                duplicates=admission.duplicates,
                ignored=polled.ignored.total(),
                ignored_by_reason=dict(polled.ignored) or None,
                kept=polled.kept,
                held=self._gatherer.held,
                deleted=gone.deleted,
                deletions_failed=gone.failed,
                oldest_age_s=None if oldest is None else round((datetime.now(UTC) - oldest).total_seconds(), 3),
                took_s=round(took_s, 3),
            )
        )


def _return_s(message: Message) -> int:
    return return_after_s(message.receive_count)
