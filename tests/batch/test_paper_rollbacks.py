"""Histories on paper in which tables go back to earlier versions while other tables are paused or fail, and rows wait for them.

FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`.
"""

from __future__ import annotations

import pytest

from tests.batch.test_paper_histories import Play, in_time, play_all


class Rollbacks(Play):
    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.rolls_back = self.tables_fail = True
        self.versioned, self.beside = False, None


@in_time
def test_tables_go_back_beside_tables_that_fail_and_every_record_stands_once() -> None:
    play_all(Rollbacks)
