"""One file waits, and two files wait."""

from __future__ import annotations

import pytest

from forebay.counted import agreed, counted


@pytest.mark.parametrize(
    ("count", "noun", "said"),
    [
        (0, "record", "0 records"),
        (1, "record", "1 record"),
        (1_200, "record", "1,200 records"),
        (1, "person", "1 person"),
        (2, "person", "2 people"),
        (2, "landed object", "2 landed objects"),
        (2, "batch", "2 batches"),
        (2, "address", "2 addresses"),
        (2, "copy", "2 copies"),
        (2, "key", "2 keys"),
        (2, "day", "2 days"),
    ],
)
def test_one_thing_is_one_and_all_other_numbers_are_of_several(count: int, noun: str, said: str) -> None:
    assert counted(count, noun) == said


@pytest.mark.parametrize(
    ("verb", "of_two"),
    [
        ("waits", "wait"),
        ("belongs", "belong"),
        ("is", "are"),
        ("was", "were"),
        ("has", "have"),
        ("does not", "do not"),
        ("was not", "were not"),
        ("may wait", "may wait"),
    ],
)
def test_the_verb_goes_with_the_number(verb: str, of_two: str) -> None:
    assert [counted(count, "row", verb) for count in (0, 1, 2)] == [
        f"0 rows {of_two}",
        f"1 row {verb}",
        f"2 rows {of_two}",
    ]
    assert (agreed(1, verb), agreed(2, verb)) == (verb, of_two)


def test_of_several_things_one_was_and_two_were() -> None:
    said = [counted(count, "file", "was", of=of) for count, of in ((1, 1), (1, 3), (2, 3), (0, 3_000), (0, 1))]
    assert said == [
        "1 of 1 file was",
        "1 of 3 files was",
        "2 of 3 files were",
        "0 of 3,000 files were",
        "0 of 1 files were",
    ]
