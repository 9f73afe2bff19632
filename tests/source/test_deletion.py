"""Deletions in the background: tried again a few times, counted, and stopped only by what a person must mend."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from forebay.aws.retrying import ATTEMPTS
from forebay.errors import InvalidConfiguration
from forebay.source.deletion import Deleted, Deletions
from forebay.source.queue import Batched, Receipt, Trouble

SOME = tuple(Receipt(f"m{n}", f"r{n}") for n in range(4))
Answer = Callable[[Sequence[Receipt]], Batched]


class Deleting:
    """Deletions of a queue that answers so."""

    def __init__(self, answer: Answer, pool: ThreadPoolExecutor) -> None:
        self.asked: list[tuple[Receipt, ...]] = []
        self.slept: list[float] = []
        self.done: list[Sequence[Receipt]] = []
        self._answer = answer
        queue: Any = self
        self.all = Deletions(queue, pool, done=self.done.append, sleep=self.slept.append, chance=lambda: 1.0)

    def delete(self, receipts: Sequence[Receipt], pool: Any) -> Batched:
        self.asked.append(tuple(receipts))
        return self._answer(receipts)


@pytest.fixture
def make() -> Iterator[Callable[[Answer], Deleting]]:
    with ExitStack() as open_ones, ThreadPoolExecutor(1) as pool:

        def make(answer: Answer) -> Deleting:
            made = Deleting(answer, pool)
            open_ones.callback(made.all.close)
            return made

        yield make


def test_what_went_what_had_gone_before_and_what_would_not_go_is_counted_since_the_last_count(make: Any) -> None:
    deleting = make(lambda some: Batched(done=1, stale=tuple(some[1:2]), failed=()))
    for _ in range(2):
        deleting.all.delete(SOME)
    assert deleting.all.flush(60)
    assert deleting.all.take_count() == Deleted(2, 2, 0)
    assert deleting.all.take_count() == Deleted()
    assert (deleting.slept, deleting.done) == ([], [SOME, SOME])


def test_what_fails_is_tried_again_with_pauses_between_and_only_that(make: Any) -> None:
    deleting = make(lambda some: Batched(done=len(some) - 1, failed=tuple(some[-1:])))
    deleting.all.delete(SOME)
    assert deleting.all.flush(60)
    assert deleting.asked == [SOME, *[SOME[-1:]] * (ATTEMPTS - 1)]
    assert (len(deleting.slept), deleting.done) == (ATTEMPTS - 1, [SOME])
    assert deleting.all.take_count() == Deleted(3, 0, 1)


@pytest.mark.parametrize("kind", ["gone", "denied"])
def test_a_queue_that_refuses_for_good_is_asked_once_and_stops_the_query(kind: Any, make: Any) -> None:
    deleting = make(lambda some: Batched(failed=tuple(some), trouble=Trouble(kind, "q", "DeleteMessage", "why")))
    deleting.all.check()
    deleting.all.delete(SOME)
    assert deleting.all.flush(60)
    assert len(deleting.asked) == 1
    assert deleting.all.take_count() == Deleted(0, 0, 4)
    with pytest.raises(InvalidConfiguration):
        deleting.all.check()


def test_whoever_waits_for_what_is_pending_is_told_when_that_takes_too_long(make: Any) -> None:
    goes_on = threading.Event()

    def wait(some: Sequence[Receipt]) -> Batched:
        goes_on.wait(60)
        return Batched(done=len(some))

    deleting = make(wait)
    for _ in range(3):
        deleting.all.delete(SOME)
    assert not deleting.all.flush(0.01)
    assert not deleting.all.flush(-1)
    goes_on.set()
    assert deleting.all.flush(60)
