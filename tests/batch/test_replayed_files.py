"""A file that an operator wants read again: its new rows replace its old ones, or the old ones stay and are counted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from forebay.batch.events import FileHeld
from forebay.batch.leftovers import left_behind, other_rows_in_force
from forebay.content.outcome import ReadOutcome
from forebay.declaration.loading import parse_service
from forebay.lake.layout import LEDGER, table_path
from forebay.ledger.entry import FORGET, PARTLY_REPLAYED, WANTED_AGAIN
from tests.batch.world import SERVICE, Died, World, records, unread, with_one_batch

BEFORE, AFTER = records(alpha=3, beta=2, broken=1), records(alpha=1, gamma=4, homeless=2)


FIRST = {"a.json": BEFORE, "b.json": records(alpha=1)}


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_one_batch(spark, tmp_path_factory.mktemp("begun"), FIRST, SERVICE)


@pytest.fixture
def world(begun: Path, spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch) -> World:
    shutil.copytree(begun, lake.removeprefix("file://"))
    return World(spark, lake, monkeypatch, answers=dict(FIRST))


def mark(world: World, key: str = "a.json") -> None:
    place = f"{world.lake.removeprefix('file://')}/_forebay/ledger"
    DeltaTable(place).update(predicate=f"key = '{key}'", updates={"outcome": "'replay'"})


@pytest.mark.deep
@pytest.mark.parametrize("dies_after", [None, 1, 3, 5])
def test_the_rows_of_a_replayed_file_take_the_place_of_its_earlier_ones_once(
    world: World, dies_after: int | None
) -> None:
    mark(world)
    world.answers["a.json"] = AFTER
    if dies_after is not None:
        with pytest.raises(Died):
            world.try_batch(1, [world.file("a.json")], dies_after=dies_after)
        mark(world, "b.json")  # meanwhile: no part of a batch that has begun
    for number in (1, 2):
        world.try_batch(number, [world.file("a.json"), *([world.file("b.json")] if number == 2 else [])])
    assert world.rows_of("alpha") == {"a.json": 1, "b.json": 1}
    assert (world.rows_of("beta"), world.rows_of("gamma")) == ({}, {"a.json": 4})
    assert world.outcomes() == {"a.json": "loaded", "b.json": "loaded"}
    world.tables_agree_with_the_ledger("alpha", "beta", "gamma")


@pytest.mark.deep
@pytest.mark.parametrize(("how", "ends"), [("missing", "loaded"), ("unavailable", "replay")])
def test_a_file_that_cannot_be_read_again_keeps_its_rows(world: World, how: ReadOutcome, ends: str) -> None:
    mark(world)
    world.answers["a.json"] = unread(how)
    world.try_batch(1, [world.file("a.json")])
    row = world.ledger()["a.json"]
    assert (row["outcome"], row["reason"], row["written"], row["quarantined"]) == (ends, "not-replayed", 5, 1)
    assert [(e.uri, e.reason) for e in world.events if isinstance(e, FileHeld)] == [
        (world.file("a.json").uri, "not-replayed")
    ]
    assert world.rows_of("alpha") == {"a.json": 3, "b.json": 1}
    world.tables_agree_with_the_ledger("alpha", "beta")


def test_rows_stay_in_a_table_that_cannot_be_written_and_no_new_ones_wait_beside_them(world: World) -> None:
    mark(world)
    world.answers["a.json"], world.paused = AFTER, ("alpha",)
    world.try_batch(1, [world.file("a.json")])
    row = world.ledger()["a.json"]
    assert (row["outcome"], row["reason"], row["detail"]) == ("loaded", PARTLY_REPLAYED, "alpha")
    assert (dict(row["tables"]), world.kept("quarantine")) == ({"alpha": 3, "gamma": 4}, {})
    ledger = world.spark.read.format("delta").load(table_path(world.lake, LEDGER))
    service = parse_service({"service.toml": SERVICE})
    assert other_rows_in_force(ledger, service) == [(row["file_id"], "alpha")]
    both = ledger.withColumn("superseded_by", F.lit("later")).withColumn(
        "detail", F.lit("alpha, beta; not-replayed: x")
    )
    both = both.where(f"file_id = '{row['file_id']}'")
    between = {"file_id": "later", "superseded_by": "latest", "outcome": "superseded", "reason": "overwritten"}
    with_later = both.union(both.withColumns({name: F.lit(value) for name, value in between.items()}))
    assert sorted(other_rows_in_force(with_later, service)) == sorted(
        [(row["file_id"], "alpha"), *((name, table) for name in ("later", "latest") for table in ("alpha", "gamma"))]
    )
    left = both.withColumn("outcome", F.lit("superseded"))
    assert [one.file_id for one in left_behind(left, service, ["later"])] == [row["file_id"]]
    half = both.withColumns({"outcome": F.lit(FORGET), "reason": F.lit("paused"), "quarantined": F.lit(0)})
    assert [one.file_id for one in left_behind(half, service, ["later"])] == [row["file_id"]]
    assert other_rows_in_force(half, service) == []
    marked = ledger.where(f"file_id = '{row['file_id']}'").withColumns(
        {"outcome": F.lit(FORGET), "reason": F.lit(None).cast("string")}
    )
    with_other = marked.union(marked.withColumns({"file_id": F.lit("other"), "outcome": F.lit("loaded")}))
    replacing = parse_service({"service.toml": 'overwritten = "replace"\n' + SERVICE})
    assert sorted(other_rows_in_force(with_other, replacing)) == [("other", "alpha"), ("other", "gamma")]
    assert other_rows_in_force(with_other, service) == []
    world.tables_agree_with_the_ledger("alpha", "beta", "gamma")


@pytest.mark.deep
def test_a_file_that_could_not_be_read_loads_when_an_operator_wants_it_again(world: World) -> None:
    """And nothing of it is left in the quarantine."""
    world.answers["c.json"] = b"\x1f\x8b torn"
    world.try_batch(1, [world.file("c.json")])
    assert (world.outcomes()["c.json"], world.kept("quarantine")) == ("unreadable", {"a.json": 1, "c.json": 1})
    world.try_batch(2, [world.file("c.json")])
    place = f"{world.lake.removeprefix('file://')}/_forebay/ledger"
    DeltaTable(place).update(predicate="key = 'c.json'", updates={"reason": f"'{WANTED_AGAIN}'"})
    world.answers["c.json"] = records(alpha=2)
    world.try_batch(3, [world.file("c.json")])
    row = world.ledger()["c.json"]
    assert (row["outcome"], row["reason"], dict(row["tables"])) == ("loaded", None, {"alpha": 2})
    assert world.kept("quarantine") == {"a.json": 1}
    world.tables_agree_with_the_ledger("alpha", "beta")
