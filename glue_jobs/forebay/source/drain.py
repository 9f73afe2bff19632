"""Drain mode: work until the queue is empty, then end.

Spark 4.1 gives a Python source no way to end its query, so the two sides meet at a marker next to the manifests. The source
checks the queue (`Stillness`). Two long polls in a row must be empty, and the queue must count nothing visible, in flight or
delayed. That includes messages that we received and have not deleted yet. Or its time is up. Then it writes the marker and
receives nothing more. The driver looks for the marker (`Drain`), and stops the query between two batches, never within one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Literal, Protocol

from forebay.lake.objects import Objects
from forebay.source.queue import Depth, Receipt

Drained = Literal["empty", "time cap"]

_MARKER = "drained.json"
_EMPTY_POLLS = 2
_GONE_AFTER_S = 60.0


class Stillness:
    """The source's side: when is there nothing more to do?"""

    def __init__(self, *, cap_s: float, clock: Callable[[], float]) -> None:
        self._clock, self._until = clock, clock() + cap_s
        self._empty_polls = 0
        self._kept: dict[str, tuple[float, Receipt]] = {}

    def seen(self, *, empty: bool) -> None:
        """Records one long poll. A failed poll does not count as empty."""
        self._empty_polls = self._empty_polls + 1 if empty else 0

    def returned(self, receipts: Iterable[Receipt], *, after_s: float) -> None:
        """Records unreadable messages, whose copies are kept: they are visible again after `after_s`."""
        self._kept.update({receipt.message_id: (self._clock() + after_s, receipt) for receipt in receipts})

    def kept(self) -> list[Receipt]:
        """The messages that were returned and are still in the queue. One that did not appear again in time has moved to the
        dead-letter queue."""
        self._kept = {name: seen for name, seen in self._kept.items() if seen[0] + _GONE_AFTER_S > self._clock()}
        return [receipt for _, receipt in self._kept.values()]

    @property
    def time_is_up(self) -> bool:
        return self._clock() >= self._until

    def reason(self, depth: Callable[[], Depth]) -> Drained | None:
        """Why to end; None to continue. The queue is counted only after empty polls."""
        if self.time_is_up:
            return "time cap"
        if self._empty_polls >= _EMPTY_POLLS and depth().messages <= len(self.kept()):
            return "empty"
        return None


class StoppableQuery(Protocol):
    """The part of Spark's StreamingQuery that the driver needs."""

    def awaitTermination(self, timeout: int | None = None) -> bool | None: ...  # noqa: N802 (Spark's name)

    def stop(self) -> None: ...


class Drain:
    """The marker, and the driver's wait for it."""

    def __init__(self, store: Objects) -> None:
        self._store = store

    def begin(self) -> None:
        """Forgets how an earlier run ended. Call it before the query starts."""
        self._store.delete([_MARKER])

    def mark(self, reason: Drained) -> None:
        self._store.write(_MARKER, json.dumps({"reason": reason}).encode())

    def over(self) -> Drained | None:
        content = self._store.read(_MARKER)
        if content is None:
            return None
        reason: Drained = json.loads(content)["reason"]
        return reason

    def wait(self, query: StoppableQuery, *, look_every_s: int = 1) -> Drained | None:
        """Stops the query when the queue is drained, and returns the reason; None if the query ended on its own. Raises the
        error that failed the query."""
        while not query.awaitTermination(look_every_s):
            reason = self.over()
            if reason:
                query.stop()
                return reason
        return None
