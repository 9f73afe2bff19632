"""On paper, the clocks of drivers stand still and go back, and tables go back to earlier readings of a file.

FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from forebay.ledger.entry import PARTLY_REPLAYED
from tests.batch.paper import roll_back_in
from tests.batch.test_paper_histories import AT, in_time, plain_play, play_all
from tests.batch.test_paper_rules import LATER, Rules, read_twice, retry_what_was_refused


class Clocks(Rules):
    def clock(self) -> datetime:
        return AT + timedelta(seconds=self.draw.randint(0, 3))


@in_time
def test_no_table_has_a_record_twice_while_clocks_go_back() -> None:
    play_all(Clocks)


@pytest.mark.parametrize("later", LATER)
@pytest.mark.parametrize("by", [timedelta(0), timedelta(minutes=-1)], ids=["stands still", "goes back"])
def test_a_rollback_knows_the_earlier_of_two_readings_where_the_clock(by: timedelta, later: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        moment = AT

        def clock() -> datetime:
            nonlocal moment
            moment += by
            return moment

        patch.setattr(play, "clock", clock)
        read_twice(play, LATER[later])
        roll_back_in(patch, play.lake, ["alpha"], 2, replay=False)
        (row,) = play.ledger()
        assert row["reason"] == PARTLY_REPLAYED
        assert retry_what_was_refused(play) == ["1", "2"]
