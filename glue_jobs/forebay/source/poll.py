"""Polls the queue once: messages are received in parallel, read, and offered to the next batch.

One request waits for the first message, and a second one asks whether there is more. Only then do the others join in, without
waiting. They end when the batch is full, when a request comes back empty, or when the time for one poll is over. Otherwise a
steady trickle would delay its first files until the batch is full. A request that fails ends the poll and keeps what the
others received.

In: an `Admission`, which is filled, and `Polled`, which gets the messages that are not in the batch.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError, ClientError

from forebay.notification import Filter, read_message
from forebay.source.admission import Admission, Notice
from forebay.source.kept import KeptMessages
from forebay.source.queue import TEN, Message, Queue, Receipt, Trouble

_LONGEST_S = 10.0


@dataclass
class Polled:
    """The result of one poll, besides the batch."""

    received: int = 0
    finished: list[Receipt] = field(default_factory=list)
    """Understood and nothing to load, or loaded before: these may go now."""
    refused: list[Message] = field(default_factory=list)
    """Not understood in any part; their copies are kept."""
    ignored: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    trouble: Trouble | None = None


class Poller:
    """Looks at one queue."""

    def __init__(
        self,
        queue: Queue,
        pool: Executor,
        kept: KeptMessages,
        only: Filter,
        *,
        parallelism: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queue, self._pool, self._kept, self._only = queue, pool, kept, only
        self._parallelism, self._clock = parallelism, clock

    def fill(self, admission: Admission, polled: Polled, wait_s: int) -> None:
        """Fills `admission` as far as the queue does; the rest is added to `polled`."""
        polled.trouble = None
        poll = _Look(admission, polled, self._clock() + wait_s + _LONGEST_S)
        if self._ask(poll, wait_s) and self._ask(poll, 0) and admission.room:
            for worker in [self._pool.submit(self._ask_on, poll) for _ in range(self._parallelism)]:
                worker.result()

    def _ask_on(self, poll: _Look) -> None:
        while self._clock() < poll.until and self._ask(poll, 0):
            pass

    def _ask(self, poll: _Look, wait_s: int) -> bool:
        """One request. False where asking on makes no sense."""
        most = poll.claim()
        if not most:
            return False
        try:
            messages = self._queue.receive(most, wait_s)
        except (ClientError, BotoCoreError) as error:
            poll.fail(self._queue.trouble("ReceiveMessage", error))
            return False
        finally:
            poll.unclaim(most)
        self._sort(poll, messages)
        return bool(messages)

    def _sort(self, poll: _Look, messages: Iterable[Message]) -> None:
        for message in messages:
            reading = read_message(message.body, self._only)
            # Before anything else can happen to the message: afterwards it may be deleted with its batch.
            newly_kept = bool(reading.refused) and self._kept.keep(message, reading.refused)
            with poll.lock:
                polled = poll.polled
                polled.received += 1
                polled.kept += newly_kept
                polled.ignored.update(ignored.reason for ignored in reading.ignored)
                if reading.files:
                    if poll.admission.offer(Notice(message, reading.files)) == "repeat":
                        polled.finished.append(message.receipt)
                elif reading.refused:
                    polled.refused.append(message)
                else:
                    polled.finished.append(message.receipt)


class _Look:
    """State that the parallel requests of one poll share."""

    def __init__(self, admission: Admission, polled: Polled, until: float) -> None:
        self.admission, self.polled, self.until = admission, polled, until
        self.lock = threading.Lock()
        self._claimed = 0

    def claim(self) -> int:
        """The number of messages to request, so that all parallel requests together should fit into the batch."""
        with self.lock:
            if self.polled.trouble:
                return 0
            most = max(0, min(TEN, self.admission.room - self._claimed))
            self._claimed += most
            return most

    def unclaim(self, most: int) -> None:
        with self.lock:
            self._claimed -= most

    def fail(self, trouble: Trouble) -> None:
        with self.lock:
            self.polled.trouble = trouble
