"""The crash matrix with its second axis: each file answers as it likes in the first try and in the second, and the driver dies
after every commit. Many cells share a batch, for files do not know of each other."""

from __future__ import annotations

import os
from itertools import product

import pytest
from pyspark.sql import SparkSession

from forebay.content.outcome import ReadOutcome, Unread
from forebay.errors import Halt
from forebay.lake.layout import PARKED, QUARANTINE
from tests.batch.world import Died, World, records, unread

PLACES = ("alpha", "beta", QUARANTINE, PARKED)
"""In the order in which they are committed; the ledger follows."""
CONTENT = records(alpha=1, beta=1, broken=1, homeless=1)
ANSWERS: tuple[ReadOutcome, ...] = ("loaded", "denied", "unavailable", "missing", "changed")
GOES_ON: tuple[ReadOutcome, ...] = ("loaded", "missing", "changed")
STOPS = range(len(PLACES) + 2)
HALTING_STOPS = STOPS if os.environ.get("FOREBAY_EVERY_CELL") else (2,)
"""Three tries each: all of them by hand."""


@pytest.fixture
def world(spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(spark, lake, monkeypatch)


def answer(how: ReadOutcome) -> bytes | Unread:
    return CONTENT if how == "loaded" else unread(how)


def in_ledger(how: ReadOutcome) -> str:
    return "missing" if how == "changed" else how


@pytest.mark.parametrize("stop", STOPS)
def test_every_row_stands_once_or_the_ledger_says_why_not(world: World, stop: int) -> None:
    cells = {f"{then}-{now}.json": (then, now) for then, now in product(ANSWERS, GOES_ON)}
    files = [world.file(key) for key in cells]
    world.answers = {key: answer(then) for key, (then, _) in cells.items()}
    with pytest.raises(Died):
        world.try_batch(0, files, dies_after=stop)
    world.answers = {key: answer(now) for key, (_, now) in cells.items()}
    world.try_batch(0, files)
    world.tables_agree_with_the_ledger("alpha", "beta")
    for key, row in world.ledger().items():
        then, now = cells[key]
        if stop == 0:
            assert (row["outcome"], row["records"]) == (in_ledger(now), 4 if now == "loaded" else 0), key
        elif then != "loaded":
            assert (row["outcome"], row["records"]) == (in_ledger(then), 0), key
        else:
            assert (row["outcome"], row["records"]) == ("loaded", 4 if now == "loaded" else min(stop, 4)), key
    assert len(world.ledger()) == len(cells)
    assert world.plans() == []


@pytest.mark.deep
@pytest.mark.parametrize("stop", HALTING_STOPS)
@pytest.mark.parametrize("now", ["denied", "unavailable"])
def test_what_s3_withholds_midway_is_awaited(world: World, stop: int, now: ReadOutcome) -> None:
    cells = {f"{then}.json": then for then in ANSWERS}
    files = [world.file(key) for key in cells]
    world.answers = {key: answer(then) for key, then in cells.items()}
    with pytest.raises(Died):
        world.try_batch(0, files, dies_after=stop)
    world.answers = dict.fromkeys(cells, answer(now))
    if 0 < stop < len(PLACES):
        with pytest.raises(Halt, match=r"rows of s3://landing/loaded.json are in"):
            world.try_batch(0, files)
        world.answers = dict.fromkeys(cells, CONTENT)
    world.try_batch(0, files)
    world.tables_agree_with_the_ledger("alpha", "beta")
    assert world.outcomes() == {key: in_ledger(now if stop == 0 else then) for key, then in cells.items()}
