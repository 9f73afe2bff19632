"""Histories made at random: files are put, overwritten, deleted, withheld and announced again, and drivers die. When all is
mended and announced once more, tables and ledger agree with a few lines of plain Python.

FOREBAY_HISTORIES=300 plays so many of them; the suite plays a few.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from forebay.content.outcome import ReadOutcome
from forebay.errors import Halt
from forebay.landed_file import LandedFile
from forebay.ledger.entry import NOT_FINAL
from tests.batch.model import Model, Put
from tests.batch.world import Died, World, records, unread

KEYS = ("a.json", "b.json")
WITHHELD: tuple[ReadOutcome, ...] = ("denied", "unavailable")

keys = st.sampled_from(KEYS)
steps = st.one_of(
    st.tuples(st.just("put"), keys),
    st.tuples(st.just("delete"), keys),
    st.tuples(st.just("withhold"), keys, st.sampled_from(WITHHELD)),
    st.tuples(st.just("mend"), keys),
    st.tuples(st.just("announce again"), keys),
    st.tuples(st.just("try")),
    st.tuples(st.just("try"), st.integers(0, 3)),
    st.tuples(st.just("new checkpoint")),
)


class Play:
    """The bucket and the queue, in plain Python; the heart is the real one."""

    def __init__(self, world: World) -> None:
        self.world, self.batch, self.generations = world, 0, 1
        self.put: dict[str, int] = {}
        self.contents: dict[str, bytes] = {}
        self.model = Model()
        self.waiting: list[LandedFile] = []
        self.taken: list[LandedFile] = []
        for key in KEYS:
            self.put_file(key)

    def do(self, step: tuple[object, ...]) -> None:
        deeds: dict[str, Callable[..., None]] = {
            "put": self.put_file,
            "delete": lambda key: self.answer(key, "missing"),
            "withhold": self.answer,
            "mend": self.mend,
            "announce again": lambda key: self.waiting.append(self.now(key)),
            "try": self.try_batch,
            "new checkpoint": self.new_checkpoint,
        }
        name, *arguments = step
        deeds[str(name)](*arguments)

    def now(self, key: str) -> LandedFile:
        return self.world.file(key, self.put[key])

    def put_file(self, key: str) -> None:
        version = self.put[key] = self.put.get(key, 0) + 1
        self.contents[key] = records(alpha=version, beta=1, broken=1)
        self.world.etags[key] = self.now(key).etag
        self.world.answers[key] = self.contents[key]
        self.model.put(Put(self.now(key), {"alpha": version, "beta": 1}, held=1))
        self.waiting.append(self.now(key))

    def answer(self, key: str, how: ReadOutcome) -> None:
        self.world.answers[key] = unread(how)

    def mend(self, key: str) -> None:
        self.world.answers[key] = self.contents[key]

    def try_batch(self, dies_after: int | None = None) -> None:
        """Messages of a batch that did not end come again with it; Spark replays it before it asks for more."""
        if not self.taken:
            self.taken, self.waiting = self.waiting, []
        if not self.taken:
            return
        try:
            self.world.try_batch(self.batch, self.taken, dies_after=dies_after)
        except (Died, Halt):
            return
        self.taken, self.batch = [], self.batch + 1

    def new_checkpoint(self) -> None:
        """It counts from 0 again, and the queue still has what was not committed."""
        self.generations += 1
        try:
            self.world.start(f"generation-{self.generations}")
        except Halt:
            self.generations -= 1
            self.world.generation = f"generation-{self.generations}"
            return
        self.waiting, self.taken, self.batch = [*self.taken, *self.waiting], [], 0

    def end(self) -> None:
        for key in KEYS:
            self.mend(key)
        for _ in range(4):
            self.try_batch()
        assert self.taken + self.waiting == [], "a batch does not end, although all is mended"
        withheld = {row["file_id"] for row in self.world.entries() if row["outcome"] in NOT_FINAL}
        self.waiting = [put.file for put in self.model.puts.values() if put.file.file_id in withheld]
        self.try_batch()

    def check(self) -> None:
        assert self.model.wrong(self.world.entries()) == []
        self.world.tables_agree_with_the_ledger("alpha", "beta")
        assert self.world.plans() == []


@pytest.fixture
def play_in(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], Play]:
    made: list[int] = []

    def play() -> Play:
        made.append(1)
        return Play(World(spark, f"file://{tmp_path}/{len(made)}", monkeypatch, generation="generation-1"))

    return play


@settings(
    max_examples=int(os.environ.get("FOREBAY_HISTORIES", "3")),
    derandomize="FOREBAY_HISTORIES" not in os.environ,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=st.lists(steps, min_size=4, max_size=10))
def test_whatever_happens_tables_and_ledger_agree_in_the_end(
    play_in: Callable[[], Play], history: list[tuple[object, ...]]
) -> None:
    play = play_in()
    for step in history:
        play.do(step)
    play.end()
    play.check()
