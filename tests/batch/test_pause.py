"""The rows of a paused table wait in the quarantine, and land exactly once when it takes rows again."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from forebay.batch.retry import Retried, Retry
from forebay.batch.retry_plan import Choice
from forebay.declaration.service import parse_service
from forebay.lake.paused import pause, resume
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
