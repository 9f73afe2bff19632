"""Files are cut into pieces and dealt to tasks, evenly, and the same way each time."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.content.limits import Limits
from forebay.content.piece import cut, deal
from forebay.errors import InvalidConfiguration
from forebay.landed_file import LandedFile

LIMITS = Limits(piece_bytes=100)


def landed(key: str, size: int | None, etag: str = "e") -> LandedFile:
    return LandedFile("b", key, size, etag=etag)


CUTS: list[tuple[LandedFile, list[tuple[int, int | None]]]] = [
    (landed("small.json", 100), [(0, None)]),
    (landed("large.json", 101), [(0, 50), (50, 101)]),
    (landed("larger.json", 300), [(0, 100), (100, 200), (200, 300)]),
    (landed("of-an-absurd-size.json", 10**16), [(0, None)]),
    (landed("large.json.gz", 1000), [(0, None)]),
    (landed("large.JSON.ZST", 1000), [(0, None)]),
    (landed("size-not-said.json", None), [(0, None)]),
    (landed("not-pinned.json", 1000, etag=""), [(0, None)]),
    (landed("empty.json", 0), [(0, None)]),
]


@pytest.mark.parametrize(("file", "ranges"), CUTS, ids=lambda x: getattr(x, "key", ""))
def test_only_large_plain_pinned_files_are_cut(file: LandedFile, ranges: list[tuple[int, int | None]]) -> None:
    assert [(p.start, p.stop) for p in cut([file], LIMITS)] == ranges


def test_pieces_are_numbered_in_the_order_of_their_files() -> None:
    pieces = cut([landed("a", 250), landed("b", 1), landed("c", 150)], LIMITS)
    assert [(p.number, p.file.key) for p in pieces] == [(0, "a"), (1, "a"), (2, "a"), (3, "b"), (4, "c"), (5, "c")]


@given(st.lists(st.integers(0, 50 << 20), max_size=60), st.integers(1, 9))
def test_every_piece_is_dealt_once_and_no_task_is_far_above_the_mean(sizes: list[int], tasks: int) -> None:
    pieces = cut([landed(str(n), size) for n, size in enumerate(sizes)], Limits())
    hands = deal(pieces, tasks)

    assert sorted(p.number for hand in hands for p in hand) == [p.number for p in pieces]
    assert len(hands) == min(tasks, len(pieces))
    weights = [sum(p.weight for p in hand) for hand in hands]
    heaviest = max((p.weight for p in pieces), default=0)
    assert max(weights, default=0) <= sum(weights) / tasks + heaviest


def test_the_order_of_the_files_does_not_change_how_heavy_the_tasks_are() -> None:
    files = [landed(str(n), n * 1000) for n in range(100)]
    shuffled = random.Random(1).sample(files, len(files))
    assert [[sum(p.weight for p in hand) for hand in deal(cut(some, Limits()), 7)] for some in (files, shuffled)] == [
        [sum(p.weight for p in hand) for hand in deal(cut(files, Limits()), 7)]
    ] * 2


def test_limits_that_cannot_be_are_refused_all_at_once() -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        Limits(files_in_flight=0, max_expanded_bytes=1 << 31)
    assert [p.where for p in refused.value.problems] == ["files_in_flight", "max_expanded_bytes"]
