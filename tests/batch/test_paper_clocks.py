"""On paper, the clocks of drivers stand still and go back, and tables go back to earlier readings of a file.

FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta

import pytest

from forebay.batch.retrying.plan import Choice
from forebay.ledger.entry import PARTLY_REPLAYED, tables_of_earlier_reading
from tests.batch.paper import Record, roll_back_in
from tests.batch.test_paper_histories import AT, HELD, TABLES, in_time, plain_play, play_all, settled_plans
from tests.batch.test_paper_rules import LATER, Rules, read_twice, retry_what_was_refused


class Clocks(Rules):
    """Some are far ahead, and nobody else goes by those."""

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.days: dict[tuple[str, int], set[date]] = {}

    def clock(self) -> datetime:
        at = AT + timedelta(seconds=self.draw.randint(0, 3), days=self.draw.choice((*[0] * 30, 40)))
        self.days.setdefault((self.generation, self.batch), set()).add(at.date())
        return at

    def attempt(self, dies_after: int | None = None) -> None:
        super().attempt(dies_after)
        self.what_is_held_has_the_day_of_its_batch()
        self.earlier_readings_are_told()

    def go_back(self, key: str) -> None:
        super().go_back(key)
        self.earlier_readings_are_told()

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        return {**super().more_deeds(), self.retry_and_undo: 8}

    def retry_and_undo(self, key: str) -> None:
        """A table goes back to before a retry, and to after it."""
        self.retry(key)
        there = [name for name in TABLES if name in self.lake.tables]
        if there:
            self.said.append(f"{(name := self.draw.choice(there))} goes back and forth")
            if roll_back_in(self.patch, self.lake, [name], 1, replay=False):
                roll_back_in(self.patch, self.lake, [name], 1, replay=False)
            self.earlier_readings_are_told()

    def what_is_held_has_the_day_of_its_batch(self) -> None:
        for row in (row for name in HELD for row in self.lake.rows(name)):
            assert row["day"] in self.days[row["generation"], row["batch"]]

    def earlier_readings_are_told(self) -> None:
        """And no others, between batches."""
        if self.taken or any("plan" in name for name in self.lake.objects):
            return
        for row in self.ledger():
            for name in tables_of_earlier_reading(row["reason"], row["detail"]) & row["tables"].keys():
                there = [one for one in self.lake.rows(name) if one["_file_id"] == row["file_id"]]
                last = [(one["generation"], one["batch"]) == (row["generation"], row["batch"]) for one in there]
                assert not all(last), f"{row['etag']} is said to have rows of an earlier reading in {name}"


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


def test_rows_of_a_retry_are_of_the_last_reading_where_its_clock_is_behind() -> None:
    """Also where a rollback is taken back."""
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        play.operator_acts = False
        for key, paused in (("add/b", ()), ("add/a", ["alpha"])):
            play.put(key)
            play.lake.answers[play.waiting[0].file_id] = [Record("alpha", key), Record("alpha", "", broken=True)]
            play.service = play.service.with_paused(paused)
            play.attempt()
        play.service = play.service.with_paused(())
        patch.setattr(play, "clock", lambda: AT - timedelta(days=1))
        play.retries(Choice("quarantine", reason="paused"))
        for left in (["add/b"], ["add/b", "add/a"]):
            roll_back_in(patch, play.lake, ["alpha"], 1, replay=False)
            assert [row["id"] for row in play.lake.rows("alpha")] == left
        (row,) = (row for row in play.ledger() if row["key"] == "add/a")
        assert (row["reason"], row["tables"], row["quarantined"]) == (None, {"alpha": 1}, 1)


def test_a_batch_has_the_day_of_its_clock_where_it_begins_later_than_a_reading_by_one_that_was_ahead() -> None:
    """Also where a table fails at its commit, and another driver goes on with the batch, by yet another clock."""
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        play.operator_acts = False
        play.put("add/a")
        patch.setattr(play, "clock", lambda: AT + timedelta(days=40))
        play.attempt()
        play.replay("add/a")
        play.put("add/b")
        play.lake.answers[play.waiting[-1].file_id] = [Record("alpha", "1"), Record(None, "")]
        patch.setattr(play, "clock", lambda: AT)
        play.attempt(6)
        assert settled_plans(play)
        play.lake.failing = {"alpha"}
        patch.setattr(play, "clock", lambda: AT + timedelta(days=1))
        play.attempt()
        held = [row for row in play.lake.rows("_forebay/quarantine") if row["batch"] == 1]
        assert {(row["reason"], row["day"]) for row in held} >= {("table-failed", AT.date())}
        assert {row["day"] for row in held} == {AT.date()}
        assert {row["claimed_at"] for row in play.ledger()} == {AT + timedelta(days=40, microseconds=1)}
