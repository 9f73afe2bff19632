"""A file that an operator wants forgotten: its rows leave every table once, and nothing but an operator brings it back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from forebay.batch.events import BatchCommitted
from forebay.operate.changing.forget import to_forget
from forebay.operate.changing.replay import mark, replay_of
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.accounts import accounts
from forebay.operate.looking.files import FileChoice
from tests.batch.world import Died, World, records, with_one_batch

KNOWN_BY_ID = """
name = "studio"
[[tables]]
name = "{game}"
columns = [{ name = "event_id" }]
dedupe = { by = ["event_id"], days = 3 }
"""
BEFORE = records(alpha=3, beta=2, broken=1, homeless=2)


@pytest.fixture(scope="module")
def begun(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {"a.json": BEFORE, "b.json": records(gamma=1)}
    return with_one_batch(spark, tmp_path_factory.mktemp("begun"), files, KNOWN_BY_ID)


@pytest.fixture
def world(begun: Path, spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch) -> World:
    shutil.copytree(begun, lake.removeprefix("file://"))
    return World(spark, lake, monkeypatch, service=KNOWN_BY_ID, answers={"a.json": BEFORE})


def forget(world: World, key: str) -> None:
    view = LakeView(world.lake)
    assert mark(view, to_forget(view, [f"s3://landing/{key}"]), "forget") == 1


def forgets(world: World, number: int, *keys: str, dies_after: int | None = None) -> None:
    world.try_batch(number, [world.file(key) for key in keys], dies_after=dies_after)


@pytest.mark.deep
@pytest.mark.parametrize("dies_after", [None, 3])
def test_rows_records_and_ids_of_a_forgotten_file_leave_once(world: World, dies_after: int | None) -> None:
    forget(world, "a.json")
    del world.answers["a.json"]  # it is not read
    if dies_after is not None:
        with pytest.raises(Died):
            forgets(world, 1, "a.json", dies_after=dies_after)
    for number in (1, 2, 3):
        forgets(world, number, "a.json")
    assert [world.rows_of(table) for table in ("alpha", "beta", "gamma")] == [{}, {}, {"b.json": 1}]
    assert (world.kept("quarantine"), world.kept("parked")) == ({}, {})
    row = world.ledger()["a.json"]
    assert (row["outcome"], row["records"], row["dropped"]) == ("forgotten", 8, 8)
    world.tables_agree_with_the_ledger("alpha", "beta", "gamma")
    assert accounts(LakeView(world.lake.removeprefix("file://"))).differences() == []
    assert [event.forgotten_files for event in world.events if isinstance(event, BatchCommitted)][-1] == 0
    world.answers["later.json"] = BEFORE
    forgets(world, 4, "later.json")
    assert world.rows_of("alpha") == {"later.json": 3}, "ids of forgotten rows drop nothing"


@pytest.mark.deep
def test_a_table_that_cannot_be_written_keeps_them_until_it_is_said_again(world: World) -> None:
    forget(world, "a.json")
    world.paused = ("alpha",)
    forgets(world, 1, "a.json")
    row = world.ledger()["a.json"]
    assert (row["outcome"], row["reason"], dict(row["tables"])) == ("forget", "paused", {"alpha": 3})
    assert (world.rows_of("alpha"), world.rows_of("beta")) == ({"a.json": 3}, {})
    world.tables_agree_with_the_ledger("alpha", "beta", "gamma")
    world.paused = ()
    forgets(world, 2, "a.json")
    assert (world.rows_of("alpha"), world.outcomes()["a.json"]) == ({}, "forgotten")
    world.tables_agree_with_the_ledger("alpha", "beta", "gamma")


@pytest.mark.deep
def test_a_forgotten_file_that_is_wanted_again_is_loaded_like_new(world: World) -> None:
    forget(world, "a.json")
    forgets(world, 1, "a.json")
    view = LakeView(world.lake)
    assert mark(view, replay_of(view, FileChoice(), ["s3://landing/a.json"])) == 1
    forgets(world, 2, "a.json")
    row = world.ledger()["a.json"]
    assert (row["outcome"], row["reason"], row["records"], row["quarantined"]) == ("loaded", None, 8, 1)
    assert (world.rows_of("alpha"), world.kept("parked")) == ({"a.json": 3}, {"a.json": 2})
    world.tables_agree_with_the_ledger("alpha", "beta", "gamma")


@pytest.mark.deep
def test_a_batch_that_began_to_forget_goes_on_whatever_is_said_meanwhile(world: World) -> None:
    forget(world, "a.json")
    with pytest.raises(Died):
        forgets(world, 1, "a.json", dies_after=1)
    DeltaTable(f"{world.lake.removeprefix('file://')}/_forebay/ledger").update(
        predicate="key = 'a.json'", updates={"outcome": "'replay'"}
    )
    forgets(world, 1, "a.json")
    assert (world.rows_of("alpha"), world.rows_of("beta"), world.outcomes()["a.json"]) == ({}, {}, "forgotten")
    world.tables_agree_with_the_ledger("alpha", "beta", "gamma")
