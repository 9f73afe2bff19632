"""How fast a service has worked lately. The job leaves it beside its checkpoint, and the rules read it. Pure.

In: batches that ended, and when runs had their first one. Out: `Pace`, to and from JSON. An invalid text is an empty pace: the
rules then use `ASSUMED`. Times are seconds since 1970.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

NAME = "pace.json"
"""The name of the object beside the checkpoint."""
KEPT_S, KEPT_BATCHES, KEPT_RUNS = 3 * 3600, 240, 5
START_S = 90.0
"""From the start of a run to its first batch, where none was measured."""


@dataclass(frozen=True)
class Done:
    """A batch that ended."""

    at: float
    files: int
    seconds: float


ASSUMED_FILE_S = 0.05
ASSUMED = (Done(0, 1, 10), Done(0, 2000, 10 + 2000 * ASSUMED_FILE_S))
TELLING = 100
"""Files of a batch that say how long one takes."""


@dataclass(frozen=True)
class Pace:
    """`firsts`: when each of the last runs began its first batch."""

    firsts: tuple[float, ...] = ()
    batches: tuple[Done, ...] = ()

    def with_run(self, first_batch_at: float) -> Pace:
        return replace(self, firsts=(*self.firsts, first_batch_at)[-KEPT_RUNS:])

    def with_batch(self, done: Done) -> Pace:
        kept = [one for one in self.batches if one.at > done.at - KEPT_S]
        return replace(self, batches=(*kept, done)[-KEPT_BATCHES:])

    def work_s(self, files: float) -> float:
        """How long these files take. Between the smallest and the largest batch that was seen, time grows with files. Beyond
        the largest, each takes as long as one of its files did; of small batches that says little."""
        seen = self.batches or ASSUMED
        least, most = (choose(seen, key=lambda one: (one.files, one.seconds)) for choose in (min, max))
        if files >= most.files:
            each = most.seconds / max(1, most.files)
            return most.seconds + (files - most.files) * (each if most.files >= TELLING else min(each, ASSUMED_FILE_S))
        share = max(0.0, files - least.files) / max(1, most.files - least.files)
        return least.seconds + share * max(0.0, most.seconds - least.seconds)

    def files_a_second(self, now: float, window_s: float) -> float:
        """That arrived and were loaded in a window before now."""
        found = [one for one in self.batches if one.at > now - window_s]
        if len(self.batches) == KEPT_BATCHES:  # those before are forgotten
            window_s = min(window_s, max(1.0, now - self.batches[0].at))
        return sum(one.files for one in found) / window_s

    def start_s(self, began: Sequence[float]) -> float:
        """From the start of a run to its first batch; `began` says when runs did."""
        earlier = [(first, [at for at in began if at <= first]) for first in self.firsts]
        return median([first - max(ats) for first, ats in earlier if ats] or [START_S])

    def text(self) -> str:
        batches = [[round(one.at), one.files, round(one.seconds, 1)] for one in self.batches]
        return json.dumps({"firsts": [round(at) for at in self.firsts], "batches": batches})

    @classmethod
    def of(cls, text: str | bytes | None) -> Pace:
        try:
            found = json.loads(text or "{}")
            batches = tuple(Done(float(at), int(files), float(seconds)) for at, files, seconds in found["batches"])
            return cls(tuple(map(float, found["firsts"])), batches)
        except (ValueError, KeyError, TypeError, OverflowError):
            return cls()
