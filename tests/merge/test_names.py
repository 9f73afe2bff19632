"""A family in which the state of one game has the name of another game's changes: nothing is mixed, and all is told."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from delta.tables import DeltaTable as Delta
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from forebay.declaration.loading import parse_service
from forebay.errors import Halt
from forebay.merge.job import Merger
from forebay.table.kernel import TableLogs
from tests.batch.world import World
from tests.merge.story import Story

SERVICE = """
name = "studio"
[[tables]]
name = "{game}_log"
mode = "merge"
columns = [{ name = "id" }, { name = "at", type = "long" }]
merge = { into = "{game}", keys = ["id"], sequence_by = ["at"] }
"""


def changes(game: str, *ids: str) -> bytes:
    return b"".join(json.dumps({"game": game, "id": one, "at": 1}).encode() + b"\n" for one in ids)


@pytest.mark.deep
def test_a_state_takes_no_records_of_another_game_and_no_table_of_records_becomes_a_state(
    spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(spark, lake, monkeypatch, service=SERVICE)
    logs = TableLogs(spark)
    merger = Merger(spark, lake.removeprefix("file://"), logs=logs, emit=world.events.append, at_once=1)

    def merged() -> dict[str, str]:
        ran = merger.run(parse_service({"service.toml": SERVICE}), (), threading.Event()).tables
        return {one.table: one.reason for one in ran}

    world.answers = {"first.json": changes("a_log", "x") + changes("c", "z"), "second.json": changes("a", "y", "y2")}
    world.answers["third.json"] = changes("c_log", "w")
    world.try_batch(0, [world.file("first.json")])
    assert merged() == {"a_log": "", "c": ""}

    # `a_log` is the state of game a_log, and now records of game a come.
    world.try_batch(1, [world.file("second.json")])
    assert world.kept("quarantine") == {"second.json": 2}
    assert world.ledger()["second.json"]["reason"] == "derived-table"
    assert world.outcomes() == {"first.json": "loaded", "second.json": "loaded"}
    merged()
    assert not Path(f"{lake.removeprefix('file://')}/a").exists(), "a state is no log"
    assert world.rows_of("a_log") == {"first.json": 1}

    # `c_log` has the records of game c, and now game c_log comes, whose state would be at that place.
    world.try_batch(2, [world.file("third.json")])
    assert merged()["c_log"] == "failed"
    assert world.rows_of("c_log") == {"first.json": 1}
    world.tables_agree_with_the_ledger("a_log_log", "c_log", "c_log_log")
    logs.close()


@pytest.mark.deep
def test_a_state_whose_log_became_the_state_of_another_one_stays_and_is_told(story: Story) -> None:
    story.bring(count=5)
    story.merge()
    before = DeltaTable(f"{story.lake}/players").version()
    story.spark.sql(f"ALTER TABLE delta.`{story.log}` SET TBLPROPERTIES ('forebay.derivedFrom' = 'others')")
    assert Delta.isDeltaTable(story.spark, story.log)
    with pytest.raises(Halt, match="another player_changes than the current one"):
        story.merge()
    assert DeltaTable(f"{story.lake}/players").version() == before
