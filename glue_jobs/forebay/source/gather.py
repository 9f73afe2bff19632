"""Gathers the files of the next batch: held messages first, then messages from the queue; in advance if the queue is long.

While Spark runs a full batch, the next one is gathered in the background, so that queue and cluster work at the same time. Its
manifest is written at once. If the driver dies now, or the trigger requests one batch only, the next run finds that batch
ready, and need not wait for the messages to be redelivered. At most one batch is gathered in advance, and none while the
stream keeps up with the queue.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from forebay.aws.retrying import ATTEMPTS, backoff_s
from forebay.errors import Halt
from forebay.source.admission import Admission, Notice, in_order
from forebay.source.manifest import Manifest, Manifests, RecentFiles
from forebay.source.options import SourceOptions
from forebay.source.poll import Polled, Poller
from forebay.source.queue import Queue, Receipt
from forebay.source.visibility import Visibility


@dataclass(frozen=True, slots=True)
class Position:
    """The number of the next manifest, and the last batch that is known to be committed."""

    number: int
    committed: int


@dataclass
class Gathered:
    """A batch in progress, the other messages of the queue, and the manifest once it is written."""

    admission: Admission
    polled: Polled = field(default_factory=Polled)
    manifest: Manifest | None = None


class Gatherer:
    """Gathers for one stream. Its methods are called by one thread; the one thread of its own never outlives a
    question."""

    def __init__(
        self,
        options: SourceOptions,
        queue: Queue,
        poller: Poller,
        manifests: Manifests,
        taken: RecentFiles,
        visibility: Visibility,
        pool: Executor,
        *,
        driver_lives: Callable[[], bool],
        sleep: Callable[[float], None],
        chance: Callable[[], float],
    ) -> None:
        self._options, self._queue, self._poller, self._manifests = options, queue, poller, manifests
        self._taken, self._visibility, self._pool, self._driver_lives = taken, visibility, pool, driver_lives
        self._sleep, self._chance = sleep, chance
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="forebay-ahead")
        self._ahead: Future[Gathered] | None = None
        self._held: list[Notice] = []
        self._closed = False

    @property
    def held(self) -> int:
        """The number of messages that wait for the next batch."""
        return len(self._held)

    def gather(self, position: Position, *, wait_s: int, ask: bool) -> Gathered:
        """The batch at `position`; its manifest is durable if there are files. Without `ask` the batch has only messages that
        were received before. Raises errors that a person must fix, and `Halt` if the queue stays unreachable."""
        gathered = self._so_far()
        if ask and gathered.manifest is None:
            self._ask(gathered, wait_s)
        self._keep(gathered)
        if gathered.admission.receipts and gathered.manifest is None:
            gathered.manifest = self._seal(gathered.admission, position)
        self._held = gathered.admission.held
        return gathered

    def go_ahead(self, position: Position) -> None:
        """Starts the batch at `position` in the background."""
        self._ahead = self._thread.submit(self._gather_ahead, self._begin(), position)

    def close(self) -> None:
        """Returns messages without a manifest to the queue, so that another run need not wait for them."""
        self._closed = True
        loose = [notice.message.receipt for notice in self._held]
        if self._ahead is not None and self._ahead.done() and not self._ahead.exception():
            gathered = self._ahead.result()
            loose += [] if gathered.manifest else _all_receipts(gathered)
        if loose:
            self._queue.hold(loose, None, for_s=0)  # without the pool: an ending process starts no new tasks in it
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _so_far(self) -> Gathered:
        ahead, self._ahead = self._ahead, None
        return ahead.result() if ahead is not None else self._begin()

    def _begin(self) -> Gathered:
        """A new batch; the held messages are offered to it first."""
        options, held = self._options, self._held
        self._held = []
        gathered = Gathered(
            Admission(self._taken, max_files=options.max_files_per_batch, max_bytes=options.max_bytes_per_batch)
        )
        for notice in held:
            if gathered.admission.offer(notice) == "repeat":
                gathered.polled.finished.append(notice.message.receipt)
        return gathered

    def _gather_ahead(self, gathered: Gathered, position: Position) -> Gathered:
        try:
            self._poller.fill(gathered.admission, gathered.polled, 0)
        except RuntimeError:
            if not self._closed:  # else the pool takes no more requests, and what came before goes back
                raise
        self._keep(gathered)
        if gathered.admission.receipts:
            gathered.manifest = self._seal(gathered.admission, position)
        return gathered

    def _ask(self, gathered: Gathered, wait_s: int) -> None:
        """Retries a failed poll a few times. Received messages are kept whatever fails after them, and throttling passes on
        its own: both end this poll, not the query."""
        polled = gathered.polled
        for attempt in range(1, ATTEMPTS + 1):
            self._poller.fill(gathered.admission, polled, 0 if gathered.admission.receipts else wait_s)
            if not polled.trouble or polled.received or gathered.admission.receipts:
                return
            if attempt < ATTEMPTS:
                self._sleep(backoff_s(attempt, self._chance()))
        if polled.trouble and polled.trouble.kind != "throttled":
            raise polled.trouble.as_error()

    def _keep(self, gathered: Gathered) -> None:
        if self._closed or not self._driver_lives():
            # It died while we waited for the queue, and its successor may be at work: this run must neither write a batch
            # nor keep messages from the next one.
            # The pool may be shut down by now.
            self._queue.hold(_all_receipts(gathered), None, for_s=0)
            raise Halt(
                "the driver of this stream has ended; the messages that it received have been returned to the queue"
            )
        self._visibility.hold(gathered.admission.receipts)
        self._visibility.hold(notice.message.receipt for notice in gathered.admission.held)

    def _seal(self, admission: Admission, position: Position) -> Manifest:
        rows = tuple(in_order(admission.rows, self._options.order))
        manifest = Manifest(position.number, position.committed, rows, tuple(admission.receipts))
        self._manifests.write(manifest)
        return manifest


def _all_receipts(gathered: Gathered) -> list[Receipt]:
    polled, admission = gathered.polled, gathered.admission
    held = [notice.message.receipt for notice in admission.held]
    return [*admission.receipts, *held, *polled.finished, *(message.receipt for message in polled.refused)]
