"""A table is dropped, and comes back: with new records, by a replay of its files, or with later versions of them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from forebay.operate.changing.drop import drop, plan_drop
from forebay.operate.changing.replay import mark, replay_of
from forebay.operate.lake_view import LakeView, lost_tables
from forebay.operate.looking.accounts import accounts
from forebay.operate.looking.files import FileChoice
from tests.batch.world import SERVICE, World, records

UNIQUE = SERVICE.replace("[[tables]]", 'overwritten = "replace"\n[[tables]]') + 'dedupe = { by = ["event_id"] }\n'


@pytest.mark.deep
def test_rows_of_a_dropped_table_come_back_with_a_replay_and_with_later_versions(
    spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(spark, lake, monkeypatch, service=UNIQUE)
    view = LakeView(lake)
    first, second = world.file("a.json"), world.file("b.json")
    world.answers = {"a.json": records(alpha=2, beta=2), "b.json": records(alpha=3)}
    world.try_batch(0, [first, second])
    assert world.rows_of("alpha") == {"a.json": 2, "b.json": 1}, "two of its records are copies"
    drop(view, plan_drop(view, ["alpha"]))
    assert lost_tables(view) == {}
    assert world.rows_of("beta") == {"a.json": 2}
    assert accounts(view).differences() == []

    world.answers["c.json"] = records(alpha=1)
    world.try_batch(1, [world.file("c.json")])
    assert world.rows_of("alpha") == {"c.json": 1}, "it is counted from its new start, and knows no earlier record"
    assert accounts(view).differences() == []

    mark(view, replay_of(view, FileChoice(table="alpha"), ["s3://landing/b.json"]))
    world.try_batch(2, [second])
    assert world.rows_of("alpha") == {"b.json": 2, "c.json": 1}
    later = world.file("a.json", 2)
    world.answers, world.etags = {"a.json": records(alpha=4)}, {"a.json": later.etag}
    world.try_batch(3, [later])
    assert sorted(world.rows_of("alpha").values()) == [1, 1, 2]
    assert world.rows_of("beta") == {}, "the earlier version is replaced"
    assert accounts(view).differences() == []
