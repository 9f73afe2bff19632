"""Waits for commits of a driver that died: S3 accepts a signed request for 15 minutes.

In: the start of this driver, which is after the death of the other one. Out: one wait, until nothing more can arrive. Only a
batch that another driver began needs it, and only before it makes a decision that such a commit would contradict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from forebay.batch.events import LateCommitsAwaited
from forebay.events import Emit


@dataclass(frozen=True, kw_only=True)
class LateCommits:
    """The late commits of one service. `wait_s` counts from `since`; 0 if no commit can be late. It is also the longest wait,
    however far the clock went back since then."""

    service: str
    since: datetime
    wait_s: float
    emit: Emit
    clock: Callable[[], datetime]
    sleep: Callable[[float], None]

    def wait_out(self, batch: int, why: str) -> None:
        left = min(self.wait_s, (self.since + timedelta(seconds=self.wait_s) - self.clock()).total_seconds())
        if left > 0:
            self.emit(LateCommitsAwaited(service=self.service, batch=batch, seconds=round(left), why=why))
            self.sleep(left)
