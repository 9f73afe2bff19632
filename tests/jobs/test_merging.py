"""Merges beside the stream: again and again, once more after a drain, and never a reason to stop taking files in."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest

from forebay.declaration.loading import builtin_service
from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.events import Event
from forebay.jobs.merging import merging
from forebay.merge.events import TableNotMerged
from forebay.merge.job import Merger


class Fake:
    """A merger that counts, and fails where it is told to."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.runs, self.failure, self.ran = 0, failure, threading.Event()

    def run(self, service: Service, names: Any, stop: threading.Event) -> None:
        self.runs += 1
        if self.runs > 1:
            self.ran.set()
        if self.failure is not None:
            raise self.failure


def beside(fake: Fake, every_s: float, *, once_more: bool, said: list[Event] | None = None) -> Any:
    emit = (said if said is not None else []).append
    return merging(cast(Merger, fake), builtin_service, every_s, once_more=once_more, emit=emit)


@pytest.mark.parametrize(("once_more", "runs"), [(True, 1), (False, 0)])
def test_what_the_last_batch_brought_is_merged_after_a_drain(once_more: bool, runs: int) -> None:
    fake = Fake()
    with beside(fake, 3600, once_more=once_more):
        pass
    assert fake.runs == runs


def test_with_no_seconds_nothing_is_merged_here() -> None:
    fake = Fake()
    with beside(fake, 0, once_more=True):
        pass
    assert fake.runs == 0


@pytest.mark.parametrize("failure", [Halt("the state is odd"), RuntimeError("the state is odd")])
def test_a_merge_that_fails_is_an_event_and_is_tried_again(failure: Exception) -> None:
    fake, said = Fake(failure), list[Event]()
    with beside(fake, 0.001, once_more=False, said=said):
        assert fake.ran.wait(60)
    assert len(said) == fake.runs >= 2
    assert all(isinstance(one, TableNotMerged) and "the state is odd" in one.detail for one in said)


def test_nothing_is_merged_after_a_stream_that_failed() -> None:
    fake = Fake()
    with pytest.raises(Halt), beside(fake, 3600, once_more=True):
        raise Halt("lost its lease")
    assert fake.runs == 0
