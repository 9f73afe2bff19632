"""The crash matrix with its second axis: each file answers as it likes in the first try and in the second, and the driver dies
after every commit. Many cells share a batch, for files do not know of each other."""

from __future__ import annotations

from itertools import product

import pytest
from pyspark.sql import SparkSession

from forebay.content.outcome import ReadOutcome, Unread
from forebay.lake.layout import PARKED, QUARANTINE
from tests.batch.world import BEFORE_THE_PLAN, Died, World, records, unread

PLACES = ("alpha", "beta", QUARANTINE, PARKED)
"""In the order in which they are committed; the ledger follows."""
CONTENT = records(alpha=1, beta=1, broken=1, homeless=1)
ANSWERS: tuple[ReadOutcome, ...] = ("loaded", "denied", "unavailable", "missing", "changed")
STOPS = (BEFORE_THE_PLAN, *range(len(PLACES) + 2))
EVERY_TIME = (BEFORE_THE_PLAN, 0, 2, len(PLACES))
"""Before the plan, after it, between the commits, and before the ledger's. In each run of `test_paper_histories`, drivers die
after any effect."""


@pytest.fixture
def world(spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(spark, lake, monkeypatch)


def answer(how: ReadOutcome) -> bytes | Unread:
    return CONTENT if how == "loaded" else unread(how)


def in_ledger(how: ReadOutcome) -> str:
    return "missing" if how == "changed" else how


@pytest.mark.parametrize(
    "stop", [pytest.param(stop, marks=[] if stop in EVERY_TIME else pytest.mark.deep) for stop in STOPS]
)
def test_every_row_stands_once_by_the_plan_if_there_is_one_and_as_the_files_read_now_if_not(
    world: World, stop: int
) -> None:
    cells = {f"{then}-{now}.json": (then, now) for then, now in product(ANSWERS, ANSWERS)}
    files = [world.file(key) for key in cells]
    world.answers = {key: answer(then) for key, (then, _) in cells.items()}
    with pytest.raises(Died):
        world.try_batch(0, files, dies_after=stop)
    world.answers = {key: answer(now) for key, (_, now) in cells.items()}
    world.try_batch(0, files)
    world.tables_agree_with_the_ledger("alpha", "beta")
    for key, row in world.ledger().items():
        counts = cells[key][1 if stop == BEFORE_THE_PLAN else 0]
        assert (row["outcome"], row["records"]) == (in_ledger(counts), 4 if counts == "loaded" else 0), key
    assert len(world.ledger()) == len(cells)
    assert world.plans() == []
