"""Histories at random: the log's rows come, leave, are erased, compacted and rolled back. Its state, rollups and export are
brought up to date by mergers that die at any moment, lose their lease, or are overtaken. In the end each equals the model.

FOREBAY_MERGE_HISTORIES=40 plays so many; FOREBAY_MERGE_HISTORY=7 plays that one alone. The suite plays a short one.
"""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from delta.exceptions import DeltaConcurrentModificationException
from delta.tables import DeltaTable as Delta
from deltalake import DeltaTable
from pyspark.sql import functions as F

from forebay.declaration.rollup import Rollup
from forebay.errors import Halt, InvalidConfiguration
from forebay.lake.layout import tombstones_of
from forebay.lake.log.live_file import LiveFile
from forebay.lake.objects import open_objects
from forebay.merge import difference
from forebay.merge.derived import Derived
from forebay.merge.rollup import roll_up
from forebay.merge.state import State
from forebay.merge.step import step
from forebay.privacy.token import token_of
from forebay.table.commit import Txn
from forebay.table.destination import Destination, Failed
from forebay.table.kernel import TableLogs
from forebay.upkeep.erase.places import Place
from forebay.upkeep.erase.rows import Erased, Found, found_in
from forebay.upkeep.erase.table import Leaving, TableErasure
from tests.merge.story import GROWING, HISTORY, MERGE, PARTIAL, SNAPSHOT, Held, Story
from tests.table.appending import append

KINDS = (MERGE, GROWING, HISTORY, PARTIAL, SNAPSHOT)
SUMS = {"n": "count(*)", "score": "sum(score)", "latest": "max(at)"}
ROLLUPS = (
    Rollup(name="worlds", tables=("player_changes",), group_by={"world": "world"}, columns=SUMS),
    Rollup(name="ids", tables=("players", "player_changes"), group_by={"id": "id"}, columns=SUMS),
)
FOREIGN = ("valid_from", "valid_to", "_content", "_g0", "_is", "row", "k")
COMMITS = (
    *((Derived, name) for name in ("create", "_set", "overwrite", "execute", "note")),
    *((State, name) for name in ("grow", "forget")),
)
"""Before and after each of them a merger may die."""
SHORT = not {"FOREBAY_MERGE_HISTORY", "FOREBAY_MERGE_HISTORIES"} & set(os.environ)


class Died(BaseException):
    pass


class Play:
    """A story whose events are drawn."""

    def __init__(self, story: Story) -> None:
        self.story, self.chance, self.oldest = story, story.chance, 0
        self.erasures = itertools.count()
        self.story.declared = self.chance.choice(KINDS)

    @property
    def log(self) -> Delta:
        return Delta.forPath(self.story.spark, self.story.log)

    def version(self) -> int:
        return DeltaTable(self.story.log).version()

    def rows_come(self) -> None:
        self.story.bring(count=self.chance.choice([2, 5, 40]))

    def file_is_replaced(self) -> None:
        if there := self.story.file_ids():
            self.story.bring(into=self.chance.choice(there), count=self.chance.choice([0, 2, 30]))

    def person_is_erased(self) -> None:
        """From the log and what is computed of it, one after the other; merges go on beside."""
        who, into = f"p{self.chance.randrange(25)}", self.story.declared.into
        self.story.said.append(f"erase {who}")
        for name in self.chance.sample(["player_changes", into, tombstones_of(into), "ids"], 4):
            if DeltaTable.is_deltatable(f"{self.story.lake}/{name}"):
                self._rows_leave(name, who)
            if self.chance.random() < 0.2:
                self.merged()

    def file_is_forgotten(self) -> None:
        if len(self.story.file_ids()) > 1:
            self.story.forget_one()

    def log_is_rolled_back(self) -> None:
        to = max(self.version() - self.chance.randrange(1, 5), self.oldest)
        self.log.restoreToVersion(to)
        self.story.said.append(f"log is rolled back to {to}")

    def files_are_deleted_that_left(self) -> None:
        self.story.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        self.log.vacuum(0)
        self.oldest = self.version()
        self.story.said.append("vacuum")

    def column_comes(self) -> None:
        """One of another name, or one that a history, its tombstones or a rollup have for themselves."""
        name = self.chance.choice([f"more_{self.version()}", *FOREIGN])
        if name not in DeltaTable(self.story.log).to_pyarrow_table().column_names:
            self.story.spark.sql(f"ALTER TABLE delta.`{self.story.log}` ADD COLUMNS ({name} string)")
            self.log.update(f"pmod(_line, {self.chance.choice([1, 2, 9])}) = 0", {f"`{name}`": "concat('of ', id)"})
            self.story.said.append(f"column {name}")

    def declaration_changes(self) -> None:
        self.story.declared = self.chance.choice(KINDS)
        self.story.said.append(f"declared: {KINDS.index(self.story.declared)}")

    def list_is_changed_in_place(self) -> None:
        """By hand, so only the list tells the new row from the old one."""
        if "items" not in DeltaTable(self.story.log).to_pyarrow_table().column_names:
            self.story.spark.sql(f"ALTER TABLE delta.`{self.story.log}` ADD COLUMNS (items array<string>)")
        items = self.chance.choice(["array()", "array('a')", "array('a', null)", "array(null, 'a')"])
        self.log.update("pmod(_line, 2) = 0", {"items": items})
        self.story.said.append(f"items = {items}")

    def another_process_goes_on(self) -> None:
        self.story.logs = TableLogs(self.story.spark)

    def merged(self) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(difference, "MOST_COMMITS", self.chance.choice([1, 3, 500]))
            while self.story.merge() is not None:
                pass
        self.story.said.append("merged")

    def rolled_up(self) -> None:
        for rollup in ROLLUPS:
            self.roll_up(rollup)
        self.story.said.append("rolled up")

    def merger_dies(self) -> None:
        self._at_a_moment(_die, self.chance.choice([self.story.merge, *map(self._rolling, ROLLUPS)]))

    def merger_is_overtaken(self) -> None:
        """Its lease ran out, and it does not know. More happened to the log before another one, perhaps of an earlier release,
        computes all of it."""
        declared = self.chance.choice([self.story.declared, self.story.declared, *KINDS])

        def another_one() -> None:
            self.chance.choice([self.rows_come, self.file_is_replaced, self.file_is_forgotten, self.log_is_optimized])()
            logs, lake = TableLogs(self.story.spark), str(self.story.lake)
            while step(self.story.spark, lake, "player_changes", declared.into, declared, logs=logs, lease=Held()):
                pass
            for rollup in ROLLUPS:
                roll_up(self.story.spark, lake, rollup, logs=logs, lease=Held())

        self._at_a_moment(another_one, self.chance.choice([self.story.merge, *map(self._rolling, ROLLUPS)]))

    def lease_is_lost(self) -> None:
        looks, lost = itertools.count(1), self.chance.randrange(1, 5)

        def check() -> None:
            if next(looks) == lost:
                raise Halt("lost")

        lease: Any = Held()
        lease.check = check
        try:
            self.story.merge(lease)
        except Halt:
            self.story.said.append(f"lease is lost at look {lost}")

    def names_meet(self) -> None:
        """A log of the family whose state would have this log's name, and this state's name as that of a log: nobody writes."""
        spark, lake, logs = self.story.spark, str(self.story.lake), self.story.logs
        declared, into = self.story.declared, self.story.declared.into
        if not DeltaTable.is_deltatable(f"{lake}/others"):
            spark.read.format("delta").load(self.story.log).limit(3).write.format("delta").save(f"{lake}/others")
        with pytest.raises(InvalidConfiguration, match="is another table"):
            step(spark, lake, "others", "player_changes", declared, logs=logs, lease=Held())
        if DeltaTable.is_deltatable(f"{lake}/{into}"):
            assert step(spark, lake, into, "of_a_state", declared, logs=logs, lease=Held()) is None
            rows = spark.read.format("delta").load(f"{lake}/{into}").withColumn("_table", F.lit(into))
            txn = Txn("family", next(self.erasures))
            found = append(spark, rows, [Destination(into, f"{lake}/{into}")], txn=txn, logs=logs)
            assert isinstance(found[into], Failed)
        self.story.said.append("names meet")

    def log_is_optimized(self) -> None:
        self.story.optimize()

    def roll_up(self, rollup: Rollup) -> Any:
        return roll_up(self.story.spark, str(self.story.lake), rollup, logs=self.story.logs, lease=Held())

    def must_agree(self) -> None:
        self.merged()
        self.story.must_agree()
        self.rolled_up()
        for rollup in ROLLUPS:
            self._must_be_sums(rollup)

    # --- inside ---

    def _rows_leave(self, name: str, who: str) -> None:
        erased = Erased(frozenset({token_of(who, b"")}), b"")

        def find(content: BinaryIO, file: LiveFile) -> Found:
            return found_in(content, [Place("id")], erased, file.partition)

        objects = open_objects(f"{self.story.lake}/{name}")
        leaving = Leaving("erase", next(self.erasures), lambda snapshot: find)
        TableErasure(name, objects, leaving, keep=timedelta()).erase(None)

    def _rolling(self, rollup: Rollup) -> Callable[[], Any]:
        return lambda: self.roll_up(rollup)

    def _at_a_moment(self, what: Callable[[], None], work: Callable[[], Any]) -> None:
        at, moments = self.chance.randrange(12), itertools.count()
        with pytest.MonkeyPatch.context() as patch:

            def moment(said: str) -> None:
                if next(moments) == at:
                    self.story.said.append(f"{said}, {getattr(what, '__name__', '')}:")
                    patch.undo()
                    what()

            def watched(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
                def call(*given: Any, **more: Any) -> Any:
                    moment(f"before {name}")
                    done = real(*given, **more)
                    moment(f"after {name}")
                    return done

                return call

            for owner, name in COMMITS:
                patch.setattr(owner, name, watched(name, getattr(owner, name)))
            try:
                work()
            except (Died, Halt, DeltaConcurrentModificationException) as ended:
                self.story.said.append(f"{type(ended).__name__}")

    def _must_be_sums(self, rollup: Rollup) -> None:
        (by,) = rollup.group_by
        groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for name in rollup.tables:
            path = self.story.lake / name
            for row in DeltaTable(path).to_pyarrow_table().to_pylist() if Path(path).exists() else ():
                groups[row[by]].append(row)
        expected = {key: (len(rows), _sum(row["score"] for row in rows), max(row["at"] for row in rows))
                    for key, rows in groups.items()}  # fmt: skip
        found = DeltaTable(self.story.lake / rollup.name).to_pyarrow_table().to_pylist()
        assert {row[by]: (row["n"], row["score"], row["latest"]) for row in found} == expected
        assert len(found) == len(expected)


def _sum(values: Any) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _die() -> None:
    raise Died


def play(story: Story) -> None:
    its = Play(story)
    of_log = [its.rows_come, its.rows_come, its.file_is_replaced, its.file_is_forgotten, its.log_is_rolled_back,
              its.log_is_optimized, its.files_are_deleted_that_left, its.column_comes, its.person_is_erased,
              its.list_is_changed_in_place]  # fmt: skip
    of_mergers = [its.merged, its.rolled_up, its.merger_dies, its.merger_dies, its.merger_is_overtaken,
                  its.lease_is_lost, its.declaration_changes, its.another_process_goes_on, its.names_meet]  # fmt: skip
    its.rows_come()
    for turn in range(1 if SHORT else 3):
        for _ in range(3):
            for happens in (story.chance.choice(of_log), story.chance.choice(of_mergers)):
                happens()
        story.said.append(f"turn {turn} ends")
        its.must_agree()


def seeds() -> list[int]:
    alone = os.environ.get("FOREBAY_MERGE_HISTORY")
    return [int(alone)] if alone else list(range(int(os.environ.get("FOREBAY_MERGE_HISTORIES", "1"))))


@pytest.mark.parametrize("seed", seeds())
def test_whatever_happens_what_is_computed_equals_the_model(story: Story, seed: int) -> None:
    story.chance.seed(seed)
    try:
        play(story)
    except BaseException as wrong:
        wrong.add_note(f"history {seed}:\n" + "\n".join(story.said))
        raise
