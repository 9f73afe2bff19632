"""A commit that others come before."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from deltalake.exceptions import CommitFailedError, DeltaError

from forebay.aws.retrying import COMMITS
from forebay.errors import Halt
from forebay.lake.conflict import commit


def refusing(times: int, error: type[Exception] = CommitFailedError) -> Callable[[], str]:
    left = [error("somebody was first")] * times

    def attempt() -> str:
        if left:
            raise left.pop()
        return "done"

    return attempt


def test_a_conflict_is_tried_again_after_growing_pauses() -> None:
    slept: list[float] = []
    assert commit(refusing(3), refused="-", sleep=slept.append) == "done"
    assert slept == [0.2, 0.4, 0.8]


def test_where_others_always_come_first_it_says_what_to_do_and_pauses_no_more() -> None:
    slept: list[float] = []
    with pytest.raises(Halt, match="say it again"):
        commit(refusing(COMMITS), refused="say it again", sleep=slept.append)
    assert len(slept) == COMMITS - 1


def test_another_failure_is_told_as_it_is() -> None:
    with pytest.raises(DeltaError):
        commit(refusing(1, DeltaError), refused="-", sleep=lambda _: None)
