"""A key that is deleted, with `on_delete = "forget"`: its rows leave every table once, and the ledger explains it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from forebay.batch.events import BatchCommitted, FileHeld
from forebay.batch.ledger_change import change_times
from forebay.batch.leftovers import remove_leftovers
from forebay.lake.layout import LEDGER, table_path
from forebay.landed_file import DELETED, LandedFile
from forebay.ledger.entry import REPLAY
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.accounts import accounts
from tests.batch.world import AT, SERVICE, Died, World, records

CONTENT = records(alpha=3, beta=2, broken=1, homeless=2)


@pytest.fixture
def world(spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch) -> World:
    answers: dict[str, Any] = {"a.json": CONTENT, "b.json": records(alpha=1)}
    return World(spark, lake, monkeypatch, service=f'on_delete = "forget"\n{SERVICE}', answers=answers)


def put(world: World, key: str, n: int, etag: str = "first") -> LandedFile:
    return replace(world.file(key, n), etag=etag)


def deletion(key: str, n: int) -> LandedFile:
    at = AT + timedelta(seconds=n)
    return LandedFile("landing", key, None, f"{DELETED}{n:016X}", None, f"{n:016X}", at)


def outcomes(world: World) -> dict[str, str]:
    return {row["etag"]: row["outcome"] for row in world.entries() if row["key"] == "a.json"}


def rows(world: World, table: str) -> int:
    return sum(row["key"] == "a.json" for row in world.entries() for _ in range((row["tables"] or {}).get(table, 0)))


def holds(world: World) -> None:
    world.tables_agree_with_the_ledger("alpha", "beta")
    assert accounts(LakeView(world.lake.removeprefix("file://"))).differences() == []


def test_rows_and_held_records_of_a_deleted_key_leave_once_and_come_back_with_it(world: World) -> None:
    world.try_batch(0, [put(world, "a.json", 1), world.file("b.json")])
    gone = deletion("a.json", 2)
    with pytest.raises(Died):
        world.try_batch(1, [gone], dies_after=1)
    world.try_batch(1, [gone])
    world.try_batch(2, [gone, put(world, "a.json", 1)])
    assert outcomes(world) == {"first": "superseded", gone.etag: "deleted"}
    assert (rows(world, "alpha"), rows(world, "beta")) == (0, 0)
    row = next(row for row in world.entries() if row["etag"] == "first")
    assert (row["records"], row["dropped"], row["quarantined"], row["parked"]) == (8, 8, 0, 0)
    holds(world)
    assert [event.deleted_files for event in world.events if isinstance(event, BatchCommitted)] == [0, 1, 0]
    assert not [event for event in world.events if isinstance(event, FileHeld)]
    world.try_batch(3, [put(world, "a.json", 3)])
    assert outcomes(world) == {"first": "loaded", gone.etag: "deleted"}
    assert (rows(world, "alpha"), rows(world, "beta")) == (3, 2)
    holds(world)


@pytest.mark.deep
def test_a_deletion_that_arrives_after_the_same_bytes_were_put_again_takes_nothing_out(world: World) -> None:
    world.try_batch(0, [put(world, "a.json", 1)])
    world.try_batch(1, [put(world, "a.json", 3)])
    world.try_batch(2, [deletion("a.json", 2)])
    assert (rows(world, "alpha"), outcomes(world)["first"]) == (3, "loaded")
    holds(world)


@pytest.mark.deep
def test_a_file_that_is_older_than_a_deletion_is_not_read(world: World) -> None:
    del world.answers["a.json"]
    gone = deletion("a.json", 2)
    world.try_batch(0, [gone])
    world.try_batch(1, [put(world, "a.json", 1)])
    assert outcomes(world) == {gone.etag: "deleted", "first": "superseded"}
    in_one = [put(world, "a.json", 3, "third"), deletion("a.json", 4)]
    world.try_batch(2, in_one)
    assert [outcomes(world)[one.etag] for one in in_one] == ["superseded", "deleted"]


@pytest.mark.deep
def test_a_paused_table_keeps_the_rows_until_the_job_starts_again(world: World) -> None:
    world.try_batch(0, [put(world, "a.json", 1)])
    world.paused = ("alpha",)
    world.try_batch(1, [deletion("a.json", 2)])
    assert (rows(world, "alpha"), rows(world, "beta"), outcomes(world)["first"]) == (3, 0, "superseded")
    world.tables_agree_with_the_ledger("alpha", "beta")
    world.paused = ()
    batch = world.batch()
    more: dict[str, Any] = {"paused": (), "logs": batch.logs, "emit": world.events.append, "now": datetime.now(UTC)}
    remove_leftovers(world.spark, batch.service, world.lake, **more)
    batch.close()
    assert rows(world, "alpha") == 0
    holds(world)


@pytest.mark.deep
def test_a_key_that_comes_back_while_a_paused_table_has_its_rows_has_them_once(world: World) -> None:
    world.try_batch(0, [put(world, "a.json", 1)])
    world.paused = ("alpha",)
    world.try_batch(1, [deletion("a.json", 2)])
    world.paused = ()
    world.try_batch(2, [put(world, "a.json", 3)])
    assert (rows(world, "alpha"), rows(world, "beta"), outcomes(world)["first"]) == (3, 2, "loaded")
    holds(world)


@pytest.mark.deep
def test_without_the_declaration_a_deletion_is_ignored(world: World) -> None:
    world.service = SERVICE
    world.try_batch(0, [put(world, "a.json", 1)])
    gone = deletion("a.json", 2)
    world.try_batch(1, [gone])
    assert (rows(world, "alpha"), outcomes(world)) == (3, {"first": "loaded", gone.etag: "ignored"})


@pytest.mark.deep
def test_the_row_of_a_file_that_comes_back_and_waits_gets_its_time_and_a_mark_and_nothing_else(world: World) -> None:
    world.try_batch(0, [put(world, "a.json", 1), put(world, "b.json", 1, "other")])
    before = world.ledger()
    marked = {**before["a.json"], "sequencer": f"{9:016X}", "outcome": REPLAY, "tries": 4}
    change_times(world.spark, table_path(world.lake, LEDGER), [{**marked, "written": 0}], "outcome", "tries")
    assert world.ledger() == {**before, "a.json": marked}
