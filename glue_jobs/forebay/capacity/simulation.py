"""Simulates arrivals under the rules, or under a fixed setting: how late files are, and how long runs last. Pure.

In: the numbers of files that arrived, by time, and the speed of the work. Out: `Outcome`. A check finds what a check in the
deployed service finds, and no more: it does not know when a file arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from forebay.capacity.pace import Pace
from forebay.capacity.rules import RUNS_LISTED, Rules, Run, Seen
from forebay.capacity.runs import Engine, Truth

Arrivals = Sequence[tuple[float, int]]
AFTER_S = 26 * 3600
"""How long the simulation continues after the last arrival, until all files are rows."""


@dataclass(frozen=True)
class Fixed:
    """Fixed settings: a drain at each look that finds files, or a run that stays on."""

    look_every_s: int
    stays: bool = False
    batch_every_s: float = 60


@dataclass(frozen=True)
class Outcome:
    late: Sequence[tuple[float, int]]
    billed_s: float
    runs: int
    gave_way: bool = False

    def percentile(self, share: float) -> float:
        """The delay that this share of files did not exceed."""
        left = share * sum(files for _, files in self.late)
        for seconds, files in sorted(self.late):
            left -= files
            if left <= 0:
                return seconds
        return 0.0

    def within(self, freshness_s: float) -> float:
        """The share of files that were rows in time."""
        files = sum(files for _, files in self.late)
        return sum(count for seconds, count in self.late if seconds <= freshness_s) / files if files else 1.0


def simulate(
    arrivals: Arrivals,
    by: Rules | Fixed,
    truth: Truth,
    *,
    until: float = 0.0,
    down: Callable[[float], bool] = lambda at: False,
) -> Outcome:
    """`until`: when it ends, if nothing waits. `down`: at such a time nothing can start."""
    engine = Engine(truth, by.batch_every_s)
    known, gave_way = Pace(), False
    since: float | None = None
    for now, before in _looks(arrivals, by.look_every_s, engine, until):
        known = _learn(known, engine, before)
        if down(now):
            if engine.began is not None:
                engine.end(now)
            continue
        if isinstance(by, Fixed):
            if engine.began is None and (by.stays or engine.waiting):
                engine.start(now, stays=by.stays)
            continue
        if engine.began is not None and not engine.stays:
            since = None
            continue
        runs = _listed(engine)
        since = None if not engine.waiting else by.first_seen(now, runs, known) if since is None else since
        decision = by.decide(Seen(now, engine.waiting, since, known, runs, engine.stays_on))
        gave_way |= decision.gives_way
        if decision.does in ("drain", "stay"):
            engine.start(now, stays=decision.does == "stay", cap_s=decision.cap_s)
            since = None
        elif decision.does == "end":
            engine.end(now)
    return Outcome(engine.late, engine.billed_s, len(engine.runs), gave_way)


def _listed(engine: Engine) -> list[Run]:
    at_work = [] if engine.began is None else [Run(engine.began)]
    return [*at_work, *(Run(*run) for run in engine.runs[-RUNS_LISTED:])]


def _learn(known: Pace, engine: Engine, before: tuple[int, int]) -> Pace:
    """Adds the batches and runs since the look before."""
    batches, firsts = before
    for done in engine.done[batches:]:
        known = known.with_batch(done)
    for first in engine.firsts[firsts:]:
        known = known.with_run(first)
    return known


def _looks(arrivals: Arrivals, every_s: int, engine: Engine, until: float) -> Iterator[tuple[float, tuple[int, int]]]:
    """The time of each look, with the batches and runs that the look before knew. While no run is at work and nothing waits,
    looks change nothing, and are left out."""
    came, now = 0, 0.0
    last = max(until, arrivals[-1][0] if arrivals else 0.0)
    while True:
        known = (len(engine.done), len(engine.firsts))
        while came < len(arrivals) and arrivals[came][0] <= now:
            engine.arrive(*arrivals[came])
            came += 1
        engine.advance(now)
        yield now, known
        if came == len(arrivals) and now >= last and (not engine.waiting or now > last + AFTER_S):
            break
        now += every_s
        if came < len(arrivals) and engine.began is None and not engine.waiting:
            now = max(now, arrivals[came][0] // every_s * every_s)
    if engine.began is not None:
        engine.end(now)
