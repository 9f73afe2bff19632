"""Which version is the later one, and when that cannot be told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from forebay.notification import newer
from forebay.notification.order import listed_at, written_later
from forebay_local.fabricate import file_named, versions


def test_of_two_versions_the_greater_sequencer_is_the_later_one() -> None:
    older, later = versions("a.json", 2, digits=(18,))
    assert (newer(later, older), newer(older, later), newer(older, older)) == (True, False, False)


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [
        ("0A", "0B", False),
        ("0b", "0A", True),  # EventBridge writes lowercase letters, S3 capitals
        ("0a", "0A", False),
        ("9", "A", False),
        ("FF", "0FF", None),
        ("0A", "", None),
        (None, "0A", None),
        (None, None, None),
        ("0x", "0y", None),
    ],
)
def test_sequencers_compare_as_numbers_of_equal_length_or_not_at_all(
    a: str | None, b: str | None, answer: bool | None
) -> None:
    file = file_named("a.json")
    assert newer(replace(file, sequencer=a), replace(file, sequencer=b)) is answer


def test_sequencers_of_different_objects_do_not_compare() -> None:
    assert newer(file_named("a.json"), file_named("b.json", version=1)) is None
    assert newer(file_named("a.json"), file_named("a.json", "elsewhere", version=1)) is None


AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
ALONE, HALF, NEXT = AT, AT + timedelta(milliseconds=500), AT + timedelta(seconds=1)
NEWEST, SECOND, THIRD = (listed_at(AT, n, is_latest=n == 0) for n in range(3))


@pytest.mark.parametrize(
    ("a", "b", "later"),
    [
        (HALF, AT + timedelta(milliseconds=499), True),
        (NEXT, HALF, True),
        (NEWEST, SECOND, True),
        (SECOND, THIRD, True),
        (NEXT, NEWEST, True),
        (NEWEST, HALF, True),  # announced and listed, in one second
        (HALF, SECOND, True),
        (HALF, THIRD, True),
        (HALF, ALONE, False),  # nothing says which: what came first is the older one
        (ALONE, HALF, False),
        (NEWEST, ALONE, False),
    ],
)
def test_by_its_clock_s3_tells_which_of_two_versions_is_later(a: datetime, b: datetime, later: bool) -> None:
    one, other = (replace(file_named("a.json"), sequencer=None, event_time=at) for at in (a, b))
    assert written_later(one, other) is later
    assert not (later and written_later(other, one))


def test_a_listing_with_many_versions_of_a_second_and_one_with_finer_times_have_times_to_compare() -> None:
    assert listed_at(AT, 5000, is_latest=False).microsecond == 1
    assert listed_at(HALF, 1, is_latest=False) == HALF
