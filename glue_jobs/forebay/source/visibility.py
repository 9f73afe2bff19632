"""Keeps our messages hidden: a thread renews their visibility timeout for as long as we hold them.

Without it, the messages of a batch longer than the visibility timeout would be redelivered. Finally they would move to the
dead-letter queue, although nothing is wrong with them. A message that cannot be renewed is dropped from the list: SQS ends the
timeout twelve hours after the receipt, or the receipt went stale. Its files are safe in a manifest, which identifies
redeliveries.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from forebay.source.queue import Queue, Receipt


class Visibility:
    """The messages that are held now. Its thread starts with the first message and ends with the process."""

    def __init__(self, queue: Queue, *, every_s: float) -> None:
        self._queue, self._every_s = queue, every_s
        self._held: dict[str, Receipt] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        # One at a time suffices: it has a third of the timeout for it, and must not crowd out the receiving.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="forebay-visibility")

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, receipts: Iterable[Receipt]) -> None:
        with self._lock:
            self._held.update((receipt.handle, receipt) for receipt in receipts)
            if self._thread is None and self._held:
                self._thread = threading.Thread(target=self._renew_for_ever, name="forebay-visibility", daemon=True)
                self._thread.start()

    def let_go(self, receipts: Iterable[Receipt]) -> None:
        """No longer renews; the messages come back when their time is over, unless they are deleted."""
        with self._lock:
            for receipt in receipts:
                self._held.pop(receipt.handle, None)

    def renew(self) -> int:
        """Renews everything once and returns how many were lost. A failed request loses none: the next round retries it."""
        with self._lock:
            held = list(self._held.values())
        stale = self._queue.hold(held, self._pool).stale
        self.let_go(stale)
        return len(stale)

    def close(self) -> None:
        self._ended.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _renew_for_ever(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                self.renew()
            except RuntimeError:  # the pool was shut down in the middle of a round
                return
