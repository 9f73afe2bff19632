"""Which version is the later one, and when that cannot be told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forebay.notification import newer
from forebay_local.fabricate import file_named, versions


def test_of_two_versions_the_greater_sequencer_is_the_later_one() -> None:
    older, later = versions("a.json", 2, digits=(18,))
    assert (newer(later, older), newer(older, later), newer(older, older)) == (True, False, False)


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [
        ("0A", "0B", False),
        ("0b", "0A", True),  # EventBridge writes small letters, S3 capitals
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
