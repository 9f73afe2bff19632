"""Histories made at random: files and archives are put, overwritten, deleted, withheld and announced again, and drivers die.
Operators pause tables, retry held records, replay files and take tables back. When all is mended and announced once more,
tables and ledger agree with a few lines of plain Python. Records have a declared array and a declared struct, some of which do
not fit, and an expectation whose alarm has a share.

FOREBAY_HISTORIES=300 plays so many of them; the suite plays a few.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from forebay.batch.events import ExpectationViolated
from forebay.batch.retrying.plan import Choice
from forebay.batch.retrying.retry import Retry
from forebay.content.outcome import ReadOutcome
from forebay.declaration.loading import parse_service
from forebay.errors import Halt, InvalidConfiguration
from forebay.lake.layout import QUALITY
from forebay.lake.paused import pause, resume
from forebay.landed_file import LandedFile
from forebay.ledger.entry import NOT_FINAL
from forebay.operate.changing.replay import mark, replay_of
from forebay.operate.changing.rollback import finish_earlier, plan_rollback, roll_back
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.files import FileChoice
from forebay.operate.named_lake import view_of
from tests.batch.model import Model, Put
from tests.batch.world import Died, World, archived, die_after, records, unread

KEYS = ("a.json", "b.json")
TABLES = ("alpha", "beta")
WITHHELD: tuple[ReadOutcome, ...] = ("denied", "unavailable")

keys, tables = st.sampled_from(KEYS), st.sampled_from(TABLES)
steps = st.one_of(
    st.tuples(st.just("put"), keys),
    st.tuples(st.just("delete"), keys),
    st.tuples(st.just("withhold"), keys, st.sampled_from(WITHHELD)),
    st.tuples(st.just("mend"), keys),
    st.tuples(st.just("announce again"), keys),
    st.tuples(st.just("try")),
    st.tuples(st.just("try"), st.integers(0, 3)),
    st.tuples(st.just("new checkpoint")),
    st.tuples(st.just("pause"), tables),
    st.tuples(st.just("resume"), tables),
    st.tuples(st.just("retry")),
    st.tuples(st.just("retry"), st.integers(0, 3)),
    st.tuples(st.just("replay"), keys),
    st.tuples(st.just("roll back"), tables, st.integers(1, 3)),
)


some_histories = settings(
    max_examples=int(os.environ.get("FOREBAY_HISTORIES", "3")),
    derandomize="FOREBAY_HISTORIES" not in os.environ,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


class Play:
    """The bucket and the queue, in plain Python; the heart is the real one. `held` are the records of each file that no table
    gets."""

    held = 1

    def __init__(self, world: World) -> None:
        self.world, self.batch, self.generations = world, 0, 1
        self.put: dict[str, int] = {}
        self.contents: dict[str, bytes] = {}
        self.model = Model()
        self.waiting: list[LandedFile] = []
        self.taken: list[LandedFile] = []
        self.went_back = False
        for key in KEYS:
            self.put_file(key)

    def do(self, step: tuple[object, ...]) -> None:
        name, *arguments = step
        self.deeds()[str(name)](*arguments)

    def deeds(self) -> dict[str, Callable[..., None]]:
        return {
            "put": self.put_file,
            "delete": lambda key: self.answer(key, "missing"),
            "withhold": self.answer,
            "mend": self.mend,
            "announce again": lambda key: self.waiting.append(self.now(key)),
            "try": self.try_batch,
            "new checkpoint": self.new_checkpoint,
            "pause": self.pause,
            "resume": self.resume,
            "retry": self.retry,
            "replay": self.replay,
            "roll back": self.roll_back,
        }

    def now(self, key: str) -> LandedFile:
        return self.world.file(key, self.put[key])

    def put_file(self, key: str) -> None:
        version = self.put[key] = self.put.get(key, 0) + 1
        lines = self.lines(version)
        self.contents[key] = archived(lines) if version % 2 == 0 else lines
        self.world.etags[key] = self.now(key).etag
        self.world.answers[key] = self.contents[key]
        self.model.put(Put(self.now(key), {"alpha": version, "beta": 1}, self.held))
        self.waiting.append(self.now(key))

    def lines(self, version: int) -> bytes:
        return records(alpha=version, beta=1, broken=1)

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

    def pause(self, table: str) -> None:
        self.world.paused = (*{*self.world.paused, table},)
        pause(self.world.lake, [table])

    def resume(self, *tables: str) -> None:
        self.world.paused = tuple(one for one in self.world.paused if one not in tables)
        resume(self.world.lake, [*tables])

    def retry(self, dies_after: int | None = None) -> None:
        """Of everything that is held; what is no JSON stays so."""
        service = parse_service({"service.toml": self.world.service})
        retry = Retry(self.world.spark, service, lake=self.world.lake, emit=self.world.events.append)
        with self.world.monkeypatch.context() as patched:
            if dies_after is not None:
                die_after(patched, dies_after)
            try:
                retry.run(Choice("quarantine"))
            except Died:
                pass
            finally:
                retry.logs.close()

    def replay(self, key: str) -> None:
        """Of all its versions. Only the last one can still be read."""
        try:
            view = view_of(self.world.lake)
            chosen = replay_of(view, FileChoice(key=key))
        except InvalidConfiguration:
            return  # before the first batch, or while a table is paused
        mark(view, chosen)
        self.waiting += [file.landed for file in chosen.files]

    def roll_back(self, table: str, versions: int) -> None:
        """Not while a batch or a retry is unfinished."""
        view = LakeView(self.world.lake)
        there = view.table(table)
        if there is None:
            return
        try:
            finish_earlier(view)
            done = roll_back(view, plan_rollback(view, [table], max(0, there.version() - versions), replay=True))
        except Halt:
            return
        self.went_back |= bool(done.tables)

    def end(self) -> None:
        for key in KEYS:
            self.mend(key)
        self.resume(*TABLES)
        for _ in range(4):
            self.try_batch()
        self.retry()
        assert self.taken + self.waiting == [], "a batch does not end, although all is mended"
        withheld = {row["file_id"] for row in self.world.entries() if row["outcome"] in NOT_FINAL}
        self.waiting = [put.file for put in self.model.puts.values() if put.file.file_id in withheld]
        self.try_batch()

    def whole(self, history: list[tuple[object, ...]]) -> None:
        for step in history:
            self.do(step)
        self.end()
        self.check()

    def check(self) -> None:
        entries = self.world.entries()
        assert self.model.wrong(entries, by_table=not self.went_back) == []
        tables = {row["file_id"]: row["tables"] for row in entries}
        for put in self.model.newest.values():  # also where an older version lost rows that nothing can bring back
            assert tables[put.file.file_id] == put.tables or put.file.file_id in self.model.forgotten
        self.world.tables_agree_with_the_ledger("alpha", "beta")
        assert self.world.plans() == []


NESTED = """
name = "studio"
[[tables]]
name = "{game}"
columns = [
  { name = "event_id" },
  { name = "tags", type = "array<string>" },
  { name = "spot", type = "struct<x: double, y: double>" },
]
[tables.expectations]
near = { check = "spot.x >= 0", alarm_above_percent = 40 }
"""
ALARM_SHARE = Fraction(40, 100)


class Shape(NamedTuple):
    """Fields of a record, as a producer writes them, the values of its columns, and what is rescued."""

    fields: str
    tags: list[str | None] | None
    spot: dict[str, float | None] | None
    rescued: dict[str, Any]

    @property
    def is_near(self) -> bool:
        return self.spot is None or self.spot["x"] is None or self.spot["x"] >= 0


SHAPES = (
    Shape('"tags": ["a", null], "spot": {"x": 1.5}', ["a", None], {"x": 1.5, "y": None}, {}),
    Shape('"tags": "a,b", "spot": {"x": -1, "y": 2}', None, {"x": -1.0, "y": 2.0}, {"tags": "a,b"}),
    Shape('"tags": [1.50, {"k": 1}], "spot": [1, 2]', ["1.50", '{"k":1}'], None, {"spot": [1, 2]}),
    Shape('"spot": {"x": "far"}', None, None, {"spot": {"x": "far"}}),
    Shape('"tags": [], "spot": {"x": -3, "z": 1}', [], {"x": -3.0, "y": None}, {"spot": {"x": -3, "z": 1}}),
)


def shape_of(version: int, number: int) -> Shape:
    """The second version of a file rings on its own, and is silent together with a first one. The third one is silent."""
    return SHAPES[(version - 1 + number) % len(SHAPES)]


class NestedPlay(Play):
    def lines(self, version: int) -> bytes:
        of = [("alpha", number) for number in range(version)] + [("beta", 0)]
        told = (
            f'{{"game": "{game}", "event_id": "{game}-{number}", {shape_of(version, number).fields}}}'
            for game, number in of
        )
        return "\n".join([*told, "{broken", ""]).encode()

    def check(self) -> None:
        super().check()
        self.each_value_is_in_its_column_or_rescued()
        self.alarms_ring_above_their_share()

    def each_value_is_in_its_column_or_rescued(self) -> None:
        versions = {row["file_id"]: int(row["etag"].rpartition("-")[2]) for row in self.world.entries()}
        for table in TABLES:
            for row in LakeView(self.world.lake).query(table, "select * from t"):
                version = versions[row["_file_id"]]
                record = self.lines(version).splitlines()[row["_line"] - 1]
                assert f'"event_id": "{row["event_id"]}"'.encode() in record, "the row leads to another record"
                wanted = shape_of(version, int(row["event_id"].rpartition("-")[2]))
                found = (row["tags"], row["spot"], json.loads(row["_rescued"] or "{}"))
                assert found == (wanted.tags, wanted.spot, wanted.rescued), wanted.fields

    def alarms_ring_above_their_share(self) -> None:
        """Of the rows of each batch. A batch that was tried twice may have told of it twice."""
        events = [event for event in self.world.events if isinstance(event, ExpectationViolated)]
        told = {(event.batch, event.table, event.rows, event.rings) for event in events}
        checked = LakeView(self.world.lake).query(QUALITY, "select * from t")
        batches = [(row["generation"], row["batch"], row["table"]) for row in checked]
        assert len({*batches}) == len(batches), "a batch has two verdicts"
        may = {table: {*self.sums_of(table)} for table in TABLES}
        for row in checked:
            rows, violated = row["rows"], row["violated"]
            assert (rows, violated) in may[row["table"]]
            rings = violated > rows * ALARM_SHARE
            assert violated == 0 or (row["batch"], row["table"], violated, rings) in told

    def sums_of(self, table: str) -> Iterator[tuple[int, int]]:
        """Rows, and those that are not near, of any files together."""
        of_file = []
        for version in (version for last in self.put.values() for version in range(1, last + 1)):
            numbers = range(version if table == "alpha" else 1)
            of_file.append((len(numbers), sum(not shape_of(version, number).is_near for number in numbers)))
        for count in range(1, len(of_file) + 1):
            for some in combinations(of_file, count):
                yield sum(rows for rows, _ in some), sum(violated for _, violated in some)


@pytest.fixture
def play_in(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], Play]:
    made: list[int] = []

    def play() -> Play:
        made.append(1)
        lake = f"file://{tmp_path}/{len(made)}"
        return NestedPlay(World(spark, lake, monkeypatch, service=NESTED, generation="generation-1"))

    return play


@pytest.mark.deep
@some_histories
@given(history=st.lists(steps, min_size=4, max_size=10))
def test_whatever_happens_tables_and_ledger_agree_in_the_end(
    play_in: Callable[[], Play], history: list[tuple[object, ...]]
) -> None:
    play_in().whole(history)
