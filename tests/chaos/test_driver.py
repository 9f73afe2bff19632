"""The points of the crash matrix themselves: each is a function that exists, and death in this process is final."""

from __future__ import annotations

import pytest

from forebay.table.kernel import TableLogs
from tests.chaos.driver import POINTS, Death, Killed, dying, raise_killed


class Hand:
    def __init__(self) -> None:
        self.done = 0

    def work(self) -> None:
        self.done += 1


@pytest.mark.parametrize(("when", "done"), [("before", 1), ("after", 2)])
def test_after_its_death_a_function_does_nothing_any_more(when: str, done: int) -> None:
    death, hand = Death(raise_killed), Hand()
    try:
        getattr(death, when)(Hand, "work", 2)
        hand.work()
        for _ in range(3):
            with pytest.raises(Killed):
                hand.work()
        assert hand.done == done
    finally:
        death.undo()
    hand.work()
    assert hand.done == done + 1


@pytest.mark.parametrize("point", [point for point in POINTS if not point.startswith("never")])
def test_every_point_is_there_and_leaves_nothing_behind(point: str) -> None:
    real = TableLogs._commit
    with dying(point):
        assert TableLogs._commit is not real
    assert TableLogs._commit is real


def test_nothing_is_committed_after_a_death_elsewhere() -> None:
    death = Death(raise_killed)
    try:
        death.no_commit_after()
        death.after(Hand, "work")
        with pytest.raises(Killed):
            Hand().work()
        with pytest.raises(Killed):
            TableLogs._commit(None, "", 0, None, [])  # type: ignore[arg-type]
    finally:
        death.undo()
