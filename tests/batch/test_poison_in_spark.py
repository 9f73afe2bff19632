"""A file that really kills the Python worker which reads it, and one that an operator wants left out."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession

from forebay.batch.one_pass.answers import Answer
from forebay.batch.one_pass.jobs import Jobs
from forebay.batch.one_pass.spec import PassSpec
from forebay.batch.one_pass.task import Task
from forebay.lake.layout import skips_of
from forebay.lake.objects import open_objects
from forebay.ledger.skips import Skip, Skips
from tests.batch.world import Died, World, records

KEYS = ("a.json", "b.json", "deadly.json", "c.json", "d.json")


@pytest.fixture
def world(spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(spark, lake, monkeypatch)
    world.answers = {key: records(alpha=2, beta=1, broken=1) for key in KEYS}
    return world


class WorkersDie:
    """In the place of the tasks; the worker that meets the deadly file is gone."""

    def __init__(self, world: World) -> None:
        self.world, self.readings = world, list[int]()

    def answers(self, spec: PassSpec) -> list[Answer]:
        self.readings.append(len(spec.pieces))
        if any(piece.file.key == "deadly.json" for piece in spec.pieces):
            self.world.spark.sparkContext.parallelize([0], 1).foreach(lambda _: os._exit(139))
        return list(Task(spec)([list(spec.pieces)]))

    def read_in(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(Jobs, "of_pieces", lambda _, spec: self.answers(spec))


def test_a_file_that_kills_its_worker_is_quarantined_alone_and_better_code_reads_it_when_it_is_retried(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [world.file(key) for key in KEYS]
    with monkeypatch.context() as deadly:
        WorkersDie(world).read_in(deadly)
        world.try_batch(1, files)
        row = world.ledger()["deadly.json"]
        assert (row["outcome"], row["reason"], row["records"]) == ("unreadable", "poison", 0)
        assert "Python worker exited unexpectedly" in row["detail"]
        others = {"a.json": 2, "b.json": 2, "c.json": 2, "d.json": 2}
        assert world.rows_of("alpha") == others
        assert world.kept("quarantine") == {**dict.fromkeys(others, 1), "deadly.json": 1}
        world.try_batch(2, [world.file("deadly.json")])  # alone, and announced again: it is kept once
        assert world.kept("quarantine") == {**dict.fromkeys(others, 1), "deadly.json": 1}
    world.try_batch(3, [world.file("deadly.json")])
    assert world.outcomes()["deadly.json"] == "loaded"
    assert world.rows_of("alpha") == {**others, "deadly.json": 2}
    world.tables_agree_with_the_ledger("alpha", "beta")
    assert [row["line"] is None for row in world._table("_forebay/quarantine")].count(True) == 0


@pytest.mark.deep
def test_a_file_that_an_operator_skips_is_never_read_until_that_is_taken_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    skips, reader = Skips(open_objects(skips_of(world.lake))), WorkersDie(world)
    wish = Skip(bucket="landing", key="deadly.json")
    skips.add(wish)
    files = [world.file(key) for key in ("a.json", "deadly.json")]
    with monkeypatch.context() as deadly:
        reader.read_in(deadly)
        with pytest.raises(Died):
            world.try_batch(1, files, dies_after=1)
        skips.remove([wish])  # too late for this batch, which goes by its plan
        world.try_batch(1, files)
        assert reader.readings == [1]
    row = world.ledger()["deadly.json"]
    assert (row["outcome"], row["reason"]) == ("skipped", "by-operator")
    skips.add(wish)
    world.try_batch(2, [world.file("deadly.json")])
    assert world.outcomes() == {"a.json": "loaded", "deadly.json": "skipped"}
    skips.remove([wish])
    world.try_batch(3, [world.file("deadly.json")])
    assert world.outcomes() == {"a.json": "loaded", "deadly.json": "loaded"}
    world.tables_agree_with_the_ledger("alpha", "beta")
