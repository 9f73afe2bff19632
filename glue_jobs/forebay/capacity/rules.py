"""Whether a run of the ingest job starts, and whether it drains or stays on: one freshness in, a decision out. Pure.

A drain costs its start each time, and a run that stays on costs every minute. So a drain begins as late as the freshness
allows, does the work that waited, and ends. If drains would have to run without a pause, a run stays on, which then costs no
more. It ends when drains achieve the freshness again, or when nothing comes. Nothing starts while nothing waits.

Each check decides only from what it finds. Times are seconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from forebay.capacity.pace import Pace

KEPT = 0.9
"""The share of the freshness that is planned with: starts and batches vary."""
BEFORE_LEAVING = 1.25
"""A run that stays on ends when drains would hold the freshness with this many times the files."""
LOOKS, LONGEST_LOOK_S, LONGEST_PAUSE_S = 15, 300, 60
LEAVES_AFTER_S = 30 * 60.0
"""A run that stays on for a freshness shorter than a start ends when no file came for so long."""
SPARE_WORK, SPARE_S = 1.25, 30
"""A drain may take longer than planned, so that it takes all that waited."""
OF_BUDGET = 0.75
"""The share of a budget that ingest may take. Upkeep, storage, requests and metrics take the rest."""
HOURS_A_MONTH = 730
BURST = 3
"""This many times the usual number of files are a burst."""
LEAST_WINDOW_S = 300.0
LONGEST_DRAIN_S = 3600
DAY_S = 24 * 3600.0
RUNS_LISTED = 200
"""The number of runs that one call lists."""


@dataclass(frozen=True)
class Run:
    began_at: float
    ended_at: float | None = None


@dataclass(frozen=True)
class Seen:
    """The things that a look finds. `waiting_since`: when a look first saw a file that still waits. `runs`: the
    newest ones, `RUNS_LISTED` at most. `staying`: a run is at work that stays on."""

    now: float
    waiting: int
    waiting_since: float | None
    pace: Pace
    runs: Sequence[Run] = ()
    staying: bool = False


@dataclass(frozen=True)
class Decision:
    """`cap_s`: how long a drain takes files, at most. `gives_way`: files wait for longer than the freshness, because of the
    budget."""

    does: Literal["drain", "stay", "end", "wait"]
    why: str
    cap_s: int = 0
    gives_way: bool = False


@dataclass(frozen=True)
class Rules:
    """`share`: of all hours, how much runs may fill; less than 1 where a budget is set."""

    freshness_s: float
    share: float = 1.0

    @property
    def look_every_s(self) -> int:
        """Whole minutes, as the clock that looks has them."""
        return 60 * max(1, min(LONGEST_LOOK_S, int(self.freshness_s / LOOKS)) // 60)

    @property
    def batch_every_s(self) -> int:
        """Between batches of a run that stays on, while less waits than a batch holds."""
        return min(LONGEST_PAUSE_S, int(self.freshness_s / 4))

    @property
    def window_s(self) -> float:
        """How far back arrivals are counted."""
        return max(LEAST_WINDOW_S, self.freshness_s)

    def first_seen(self, now: float, runs: Sequence[Run], pace: Pace) -> float:
        """When the files were seen that a look finds waiting, and the look before did not. A run that has just ended left those
        that came during its last batch."""
        ended = max((run.ended_at for run in runs if run.ended_at is not None), default=0.0)
        last = pace.batches[-1].seconds if pace.batches else 0.0
        return min(now, ended - last + self.look_every_s) if now - ended <= self.look_every_s else now

    def decide(self, seen: Seen) -> Decision:
        start_s = seen.pace.start_s([run.began_at for run in seen.runs])
        over = self.share < 1 and busy_share(seen.runs, seen.now) >= self.share
        if seen.staying:
            return self._leave(seen, start_s, over)
        if not seen.waiting:
            return Decision("wait", "nothing waits")
        late = self._is_due(seen, start_s)
        if over:
            return Decision("wait", "the budget delays the next run", gives_way=late)
        if self._drains_cannot_pause(seen, start_s):
            return Decision("stay", "drains would run without a pause")
        if not late:
            return Decision("wait", "files wait, and there is still time")
        return Decision("drain", "files wait", cap_s=self._cap_s(seen))

    def _cap_s(self, seen: Seen) -> int:
        """Where files come all the time, a queue is never empty: a drain does the work that waited, and pauses. A burst it
        follows to its end, which spares another start."""
        rate = seen.pace.files_a_second(seen.now, 2 * self.window_s)
        assert seen.waiting_since is not None
        usual = rate * (seen.now - seen.waiting_since + self.look_every_s)
        if seen.waiting > BURST * usual:
            return LONGEST_DRAIN_S
        return min(LONGEST_DRAIN_S, math.ceil(SPARE_S + SPARE_WORK * seen.pace.work_s(seen.waiting)))

    def _leave(self, seen: Seen, start_s: float, over: bool) -> Decision:
        if over:
            return Decision("end", "the budget ends the continuous run", gives_way=seen.waiting > 0)
        if (
            not seen.waiting
            and not seen.pace.files_a_second(seen.now, LEAVES_AFTER_S)
            and _since(seen) > LEAVES_AFTER_S
        ):
            return Decision("end", "nothing comes")
        if self._drains_cannot_pause(seen, start_s, BEFORE_LEAVING) or _since(seen) < self.window_s:
            return Decision("wait", "it is already running")
        return Decision("end", "drains achieve the freshness again")

    def _drains_cannot_pause(self, seen: Seen, start_s: float, times: float = 1) -> bool:
        """Whether a start, two looks and the work on what arrives meanwhile fill the freshness."""
        rate = seen.pace.files_a_second(seen.now, self.window_s)
        return self._takes_s(start_s, seen.pace.work_s(times * rate * self.freshness_s)) > KEPT * self.freshness_s

    def _is_due(self, seen: Seen, start_s: float) -> bool:
        """Whether the next look would be too late. The oldest file may have come just after the look before."""
        if not seen.waiting or seen.waiting_since is None:
            return False
        takes_s = self._takes_s(start_s, seen.pace.work_s(seen.waiting))
        return seen.now - seen.waiting_since + takes_s >= KEPT * self.freshness_s

    def _takes_s(self, start_s: float, work_s: float) -> float:
        return 2 * self.look_every_s + start_s + work_s


def _since(seen: Seen) -> float:
    """How long the run at work has been there."""
    return seen.now - max((run.began_at for run in seen.runs if run.ended_at is None), default=seen.now)


def busy_share(runs: Sequence[Run], now: float) -> float:
    """How much of the last day runs filled; where the list of runs does not reach so far, of the time since its oldest one."""
    since = now - DAY_S
    if len(runs) >= RUNS_LISTED:
        since = min(now - 1, max(since, min(run.began_at for run in runs)))
    spans = [max(0.0, (now if run.ended_at is None else run.ended_at) - max(run.began_at, since)) for run in runs]
    return math.fsum(spans) / (now - since)


def share_of_budget(usd_a_month: float, usd_an_hour: float) -> float:
    """How much of all hours a budget pays for; without a budget all of them."""
    return min(1.0, OF_BUDGET * usd_a_month / (HOURS_A_MONTH * usd_an_hour)) if usd_a_month and usd_an_hour else 1.0
