"""Deletes the messages of committed batches from the queue in the background, while the next batch is in progress.

Nothing waits for it and nothing depends on it: a message that is not deleted is redelivered, recognised as a repeat, and
deleted then. So failed entries are retried a few times and then counted; a stale receipt is not a failure. Only an error that
a person must fix is remembered, and stops the query with the next batch.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass

from forebay.aws.retrying import ATTEMPTS, backoff_s
from forebay.source.queue import Queue, Receipt, Trouble


@dataclass(frozen=True, slots=True)
class Deleted:
    """Counts of messages that were deleted, had been deleted before, and could not be deleted."""

    deleted: int = 0
    stale: int = 0
    failed: int = 0


class Deletions:
    """Deletes what it is given, in the order in which it was given."""

    def __init__(
        self,
        queue: Queue,
        pool: Executor,
        *,
        done: Callable[[Sequence[Receipt]], None] = lambda _: None,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._queue, self._pool, self._done, self._sleep, self._chance = queue, pool, done, sleep, chance
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="forebay-deletion")
        self._lock = threading.Lock()
        self._pending: set[Future[None]] = set()
        self._count = Deleted()
        self._trouble: Trouble | None = None

    def delete(self, receipts: Sequence[Receipt]) -> None:
        """Returns at once. `done` is called with the receipts when the queue has been asked for all of them."""
        if receipts:
            work = self._thread.submit(self._delete, tuple(receipts))
            with self._lock:
                self._pending.add(work)
            work.add_done_callback(self._forget)

    def flush(self, timeout_s: float) -> bool:
        """Waits until nothing is pending; False where that took too long."""
        until = time.monotonic() + timeout_s
        for work in list(self._pending):
            try:
                work.result(max(0.0, until - time.monotonic()))
            except TimeoutError:
                return False
        return True

    def take_count(self) -> Deleted:
        """The counts since the last call."""
        with self._lock:
            count, self._count = self._count, Deleted()
        return count

    def check(self) -> None:
        """Raises if the queue has refused to delete for a reason that a person must fix."""
        if self._trouble is not None:
            raise self._trouble.as_error()

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _forget(self, work: Future[None]) -> None:
        with self._lock:
            self._pending.discard(work)

    def _delete(self, receipts: Sequence[Receipt]) -> None:
        deleted = stale = 0
        left: Sequence[Receipt] = receipts
        for attempt in range(ATTEMPTS):
            if attempt:
                self._sleep(backoff_s(attempt, self._chance()))
            outcome = self._queue.delete(left, self._pool)
            deleted, stale, left = deleted + outcome.done, stale + len(outcome.stale), outcome.failed
            if outcome.trouble and outcome.trouble.kind in ("gone", "denied"):
                self._trouble = outcome.trouble
                break
            if not left:
                break
        with self._lock:
            now = self._count
            self._count = Deleted(now.deleted + deleted, now.stale + stale, now.failed + len(left))
        self._done(receipts)
