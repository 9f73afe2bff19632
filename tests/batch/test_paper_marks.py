"""Histories on paper in which several operators mark files, take marks back and retry records between the effects of one batch,
of the same keys that it loads. Every record stands once, and what was to be forgotten is gone.

FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.batch.test_paper_histories import Play, in_time, play_all


class Marks(Play):
    operator_acts = False

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.rolls_back = self.versioned = False
        self.beside = None
        self.keys = ("add/a", "new/a")
        self.tables_fail = self.draw.random() < 0.7

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        return {self.put: 8, self.replay: 6, self.forget: 3, self.bring_back: 3}

    def do(self, deeds: dict[Callable[[str], None], int], most: int) -> None:
        super().do(deeds, 2 * most)

    def attempt(self, dies_after: int | None = None) -> None:
        if not self.ending and self.lake.meanwhile is None and self.draw.random() < 0.6:
            self.next_deed(0, self.draw.randint(1, 4))
        super().attempt(dies_after)
        self.lake.meanwhile = None

    def next_deed(self, at: int, left: int) -> None:
        """Before a later effect than the last one."""
        at += self.draw.randint(0, 5)

        def deed() -> None:
            may = [self.forget, self.bring_back, self.replay, *([self.retry] * 2 if self.tables_fail else [])]
            deed, key = self.draw.choice(may), self.draw.choice(self.keys)
            self.said.append(f"before effect {at}: {deed.__name__} {key}")
            deed(key)
            if left > 1:
                self.next_deed(at, left - 1)

        self.lake.meanwhile = (at, deed)


@in_time
def test_operators_mark_and_retry_files_between_the_effects_of_a_batch() -> None:
    play_all(Marks)
