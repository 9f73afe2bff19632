"""Several questions at once, in threads."""

from __future__ import annotations

import threading

import pytest

from forebay.threads import answers_by, both, in_threads


def test_answers_come_in_the_order_of_the_questions() -> None:
    assert in_threads(str, [3, 1, 2], 2) == ["3", "1", "2"]
    assert answers_by(str, iter([3, 1])) == {3: "3", 1: "1"}


def test_two_questions_are_asked_at_once() -> None:
    meeting = threading.Barrier(2, timeout=60)
    assert both(lambda: (meeting.wait(), "one")[1], lambda: (meeting.wait(), "other")[1]) == ("one", "other")


@pytest.mark.parametrize("first", [True, False])
def test_the_failure_of_either_is_raised_once_the_other_has_its_answer(first: bool) -> None:
    done = list[str]()

    def fails() -> None:
        raise OSError("no answer")

    def answers() -> None:
        done.append("answered")

    with pytest.raises(OSError, match="no answer"):
        both(*((fails, answers) if first else (answers, fails)))
    assert done == ["answered"]
