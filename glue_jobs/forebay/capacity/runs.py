"""The runs of a simulation: they load waiting files batch by batch, drain or stay on, and cost the time that they last. Pure.

In: arrivals, added as the time goes, and the times at which a run starts and ends. Out: how late each file was, and how many
seconds of runs are billed.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from forebay.capacity.pace import Done

LEAST_BILLED_S = 60.0
"""Glue bills each run a minute at least."""


@dataclass(frozen=True)
class Truth:
    """How long things take. `tail_s`: a drain polls an empty queue for so long before it ends, and Spark stops."""

    work_s: Callable[[float], float]
    start_s: float = 90.0
    tail_s: float = 25.0
    batch_files: int = 2000


@dataclass
class Engine:
    """An engine with at most one run at a time, as the job allows."""

    truth: Truth
    every_s: float = 0.0
    """Between batches of a run that stays on, while less waits than a batch holds."""
    late: list[tuple[float, int]] = field(default_factory=list)
    """How late how many files were."""
    done: list[Done] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    runs: list[tuple[float, float]] = field(default_factory=list)
    began: float | None = None
    stays: bool = False
    waiting: int = 0
    _queue: deque[tuple[float, int]] = field(default_factory=deque)
    _until: float = math.inf
    _free_at: float = 0.0
    _next_at: float = 0.0
    _idle_since: float = 0.0

    def arrive(self, at: float, files: int) -> None:
        self._queue.append((at, files))
        self.waiting += files

    def start(self, at: float, *, stays: bool, cap_s: float = math.inf) -> None:
        self.began, self.stays, self._until = at, stays, at + self.truth.start_s + cap_s
        self._free_at = self._next_at = self._idle_since = at + self.truth.start_s
        self.firsts.append(self._free_at)

    def end(self, at: float) -> None:
        """After its batch, as `forebay stop` does."""
        assert self.began is not None
        self.runs.append((self.began, max(at, self._free_at)))
        self.began = None

    def advance(self, to: float) -> None:
        """Batches that begin before `to`. All arrivals up to then are there."""
        while self.began is not None and (at := max(self._free_at, self._next_at)) < to:
            if not self.stays and at >= self._until:
                self.end(at)
                return
            if self._queue and self._queue[0][0] <= at:
                self._batch(at)
                continue
            coming = self._queue[0][0] if self._queue else to
            if not self.stays and coming - self._idle_since > self.truth.tail_s:
                self.end(self._idle_since + self.truth.tail_s)
            elif not self._queue:
                return
            else:
                self._free_at = self._looked_at(coming)

    def _looked_at(self, coming: float) -> float:
        """When a run that waits for files sees one: a run that stays on looks at the queue at intervals."""
        if not self.stays or not self.every_s:
            return coming
        return self._next_at + math.ceil((coming - self._next_at) / self.every_s) * self.every_s

    def _batch(self, at: float) -> None:
        taken: list[tuple[float, int]] = []
        room = self.truth.batch_files
        while self._queue and room and self._queue[0][0] <= at:
            came, files = self._queue.popleft()
            take = min(files, room)
            if take < files:
                self._queue.appendleft((came, files - take))
            taken.append((came, take))
            room -= take
        files = sum(count for _, count in taken)
        seconds = self.truth.work_s(files)
        ended = at + seconds
        self.waiting -= files
        self.late += [(ended - came, count) for came, count in taken]
        self.done.append(Done(ended, files, seconds))
        self._free_at = self._idle_since = ended
        self._next_at = at + self.every_s if self.stays and room else ended

    @property
    def stays_on(self) -> bool:
        return self.began is not None and self.stays

    @property
    def billed_s(self) -> float:
        return sum(max(LEAST_BILLED_S, end - begin) for begin, end in self.runs)
