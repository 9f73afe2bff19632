"""Drain: the source's rule for when there is nothing more, and the driver's wait for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.lake.objects import open_objects
from forebay.source.drain import Drain, Stillness
from forebay.source.queue import Depth, Receipt

EMPTY = Depth(0, 0, 0)


@pytest.mark.parametrize(
    ("polls", "depth", "reason"),
    [
        ([0], EMPTY, None),
        ([0, 0], EMPTY, "empty"),
        ([0, 3, 0], EMPTY, None),
        ([5, 0, 0, 0], EMPTY, "empty"),
        ([0, 0], Depth(1, 0, 0), None),
        ([0, 0], Depth(0, 1, 0), None),
        ([0, 0], Depth(0, 0, 1), None),
    ],
)
def test_a_queue_is_drained_after_two_empty_polls_with_nothing_counted(
    polls: list[int], depth: Depth, reason: str | None
) -> None:
    stillness = Stillness(cap_s=60, clock=lambda: 0.0)
    for received in polls:
        stillness.seen(empty=received == 0)
    assert stillness.reason(lambda: depth) == reason


def test_messages_that_came_back_and_are_kept_do_not_count_until_they_went_to_the_dead_letter_queue() -> None:
    now = [0.0]
    stillness = Stillness(cap_s=1000, clock=lambda: now[0])
    for _ in range(2):
        stillness.seen(empty=True)
    stillness.returned([Receipt("odd", "r")], after_s=5)
    assert stillness.reason(lambda: Depth(0, 2, 0)) is None
    assert stillness.reason(lambda: Depth(0, 1, 0)) == "empty"
    now[0] = 70
    assert stillness.reason(lambda: Depth(0, 1, 0)) is None


def test_a_queue_is_not_counted_before_it_seems_empty() -> None:
    def count() -> Depth:
        raise AssertionError("asked")

    stillness = Stillness(cap_s=60, clock=lambda: 0.0)
    stillness.seen(empty=True)
    assert stillness.reason(count) is None


def test_a_drain_ends_when_its_time_is_up() -> None:
    now = [0.0]
    stillness = Stillness(cap_s=60, clock=lambda: now[0])
    now[0] = 60.0
    assert stillness.reason(lambda: Depth(9, 9, 9)) == "time cap"


class FakeQuery:
    """Ends by itself after `lives` looks, if ever; marks the queue drained at look `drained_at`."""

    def __init__(self, drain: Drain, *, drained_at: int = -1, lives: int = 99, fails: bool = False) -> None:
        self.drain, self.drained_at, self.lives, self.fails = drain, drained_at, lives, fails
        self.looks, self.stopped = 0, False

    def awaitTermination(self, timeout: int | None = None) -> bool:  # noqa: N802 (Spark's name)
        self.looks += 1
        if self.looks == self.drained_at:
            self.drain.mark("empty")
        if self.looks == self.lives and self.fails:
            raise RuntimeError("the query failed")
        return self.looks >= self.lives

    def stop(self) -> None:
        self.stopped = True


def test_the_driver_stops_the_query_once_the_source_says_that_it_is_drained(tmp_path: Path) -> None:
    drain = Drain(open_objects(str(tmp_path)))
    query = FakeQuery(drain, drained_at=3)
    assert (drain.wait(query), query.looks, query.stopped) == ("empty", 3, True)


def test_a_query_that_ends_by_itself_is_not_called_drained(tmp_path: Path) -> None:
    drain = Drain(open_objects(str(tmp_path)))
    query = FakeQuery(drain, lives=2)
    assert (drain.wait(query), query.stopped) == (None, False)


def test_what_failed_the_query_is_raised(tmp_path: Path) -> None:
    drain = Drain(open_objects(str(tmp_path)))
    with pytest.raises(RuntimeError, match="the query failed"):
        drain.wait(FakeQuery(drain, lives=2, fails=True))


def test_how_an_earlier_run_ended_does_not_end_this_one(tmp_path: Path) -> None:
    drain = Drain(open_objects(str(tmp_path)))
    drain.mark("time cap")
    drain.begin()
    assert drain.over() is None


@pytest.mark.parametrize(("now", "messages"), [(64.9, 1), (65.0, 0)])
def test_a_message_that_came_back_is_in_the_queue_until_a_minute_after_it_should_have_shown(
    now: float, messages: int
) -> None:
    clock = [0.0]
    stillness = Stillness(cap_s=1000, clock=lambda: clock[0])
    stillness.returned([Receipt("odd", "r")], after_s=5)
    clock[0] = now
    assert len(stillness.kept()) == messages


@pytest.mark.parametrize(("now", "is_up"), [(59.9, False), (60.0, True)])
def test_the_time_of_a_drain_is_up_at_its_end_and_not_before(now: float, is_up: bool) -> None:
    clock = [0.0]
    stillness = Stillness(cap_s=60, clock=lambda: clock[0])
    clock[0] = now
    assert stillness.time_is_up is is_up
