"""The rows of a paused table wait in the quarantine, and land exactly once when it takes rows again."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from forebay.batch.ledger_change import change_counts
from forebay.batch.retrying.moving import Moving, Retried
from forebay.batch.retrying.plan import Choice
from forebay.batch.retrying.retry import Retry
from forebay.declaration.loading import parse_service
from forebay.lake.paused import pause, resume
from forebay.operate.changing.replay import mark, replay_of
from forebay.operate.looking.files import FileChoice
from forebay.operate.named_lake import view_of
from forebay.table.commit import Txn
from forebay.table.kernel import TableLogs
from tests.batch.world import Died, World, records

BOTH = records(alpha=2, beta=3)
WAITING = Choice("quarantine", reason="paused")


@pytest.fixture
def world(spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(spark, lake, monkeypatch)
    made.answers = {"a.json": BOTH}
    return made


def retried(world: World, spark: SparkSession) -> Retried:
    service = parse_service({"service.toml": world.service})
    retry = Retry(spark, service, lake=world.lake, emit=world.events.append)
    try:
        return retry.run(WAITING)
    finally:
        retry.logs.close()


@pytest.mark.deep
@pytest.mark.parametrize("dies_after", [1, 2])
def test_a_replay_goes_by_the_tables_that_were_paused_in_the_first_try(
    world: World, spark: SparkSession, dies_after: int
) -> None:
    """The driver dies after the table that is not paused, and after the quarantine; in between somebody resumes."""
    world.paused = ("alpha",)
    with pytest.raises(Died):
        world.try_batch(0, [world.file("a.json")], dies_after=dies_after)
    world.paused = ()
    world.try_batch(0, [world.file("a.json")])
    assert (world.rows_of("alpha"), world.rows_of("beta")) == ({}, {"a.json": 3})
    (entry,) = world.entries()
    assert (entry["outcome"], entry["reason"], entry["quarantined"]) == ("loaded", "paused", 2)
    world.tables_agree_with_the_ledger("alpha", "beta")

    pause(world.lake, ["alpha"])
    assert retried(world, spark) == Retried(2), "a retry passes a paused table by"
    resume(world.lake, ["alpha"])
    assert retried(world, spark) == Retried(2, {"alpha": 2})
    assert retried(world, spark) == Retried()
    assert (world.rows_of("alpha"), world.kept("quarantine")) == ({"a.json": 2}, {})
    world.tables_agree_with_the_ledger("alpha", "beta")


def test_a_version_that_is_to_be_replaced_stays_counted_in_a_paused_table(world: World) -> None:
    world.service = world.service.replace("[[tables]]", 'overwritten = "replace"\n[[tables]]')
    world.try_batch(0, [world.file("a.json")])
    world.paused, world.answers, world.etags = ("_all",), {"a.json": records(beta=1)}, {"a.json": "a.json-2"}
    world.try_batch(1, [world.file("a.json", 2)])
    assert (len(world._table("alpha")), len(world._table("beta"))) == (2, 3)
    world.tables_agree_with_the_ledger("alpha", "beta")


@pytest.mark.deep
def test_held_records_of_a_file_that_a_batch_is_replacing_wait_for_it(world: World, spark: SparkSession) -> None:
    world.service = world.service.replace("[[tables]]", 'overwritten = "replace"\n[[tables]]')
    world.paused = ("alpha",)
    world.try_batch(0, [world.file("a.json")])
    world.paused, world.answers, world.etags = (), {"a.json": records(alpha=1, beta=3)}, {"a.json": "a.json-2"}
    with pytest.raises(Died):
        world.try_batch(1, [world.file("a.json", 2)], dies_after=1)
    assert retried(world, spark) == Retried(waiting=1)
    world.try_batch(1, [world.file("a.json", 2)])
    assert (len(world._table("alpha")), len(world._table("beta")), world.kept("quarantine")) == (1, 3, {})
    world.tables_agree_with_the_ledger("alpha", "beta")


@pytest.mark.deep
def test_a_replay_that_is_asked_for_beside_a_retry_stays_asked_for(
    world: World, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.paused = ("alpha",)
    world.try_batch(0, [world.file("a.json")])
    reading = Moving.ledger_rows

    def read(moving: Moving, file_ids: Any) -> Any:
        rows = reading(moving, file_ids)
        view = view_of(world.lake)
        assert mark(view, replay_of(view, FileChoice())) == 1
        return rows

    monkeypatch.setattr(Moving, "ledger_rows", read)
    assert retried(world, spark) == Retried(2, {"alpha": 2})
    (entry,) = world.entries()
    assert (entry["outcome"], entry["tables"], entry["quarantined"]) == ("replay", {"alpha": 2, "beta": 3}, 0)

    stale, fresh = {**entry, "quarantined": 7}, {**entry, "parked": 1}
    asked = iter([[(stale, entry)], [(entry, fresh)]])
    logs = TableLogs(spark, emit=world.events.append)
    change_counts(spark, f"{world.lake}/_forebay/ledger", lambda: next(asked), txn=Txn("a", 1), logs=logs)
    assert world.entries() == [fresh]
    logs.close()
