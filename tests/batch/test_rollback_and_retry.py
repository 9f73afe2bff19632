"""A rollback brings an earlier version of a file back, while records of the later version still wait in the quarantine."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from forebay.batch.retrying.moving import Retried
from forebay.batch.retrying.plan import Choice
from forebay.batch.retrying.retry import Retry
from forebay.declaration.loading import parse_service
from forebay.operate.changing.replay import mark, replay_of
from forebay.operate.changing.rollback import plan_rollback, roll_back
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.files import FileChoice
from tests.batch.world import SERVICE, World, records

REPLACING = SERVICE.replace("[[tables]]", 'overwritten = "replace"\n[[tables]]')
STRICT = f"""{REPLACING}
[tables.expectations]
first = {{ check = "event_id = 'alpha-0'", on_violation = "quarantine" }}
"""


def retried(world: World, choice: Choice) -> Retried:
    retry = Retry(world.spark, parse_service({"service.toml": REPLACING}), lake=world.lake, emit=world.events.append)
    try:
        return retry.run(choice)
    finally:
        retry.logs.close()


def take_back(world: World, to: int) -> None:
    view = LakeView(world.lake)
    roll_back(view, plan_rollback(view, ["alpha"], to, replay=False))


def in_alpha(world: World) -> dict[str, int]:
    world.tables_agree_with_the_ledger("alpha")
    found: dict[str, int] = {}
    for row in world._table("alpha"):
        found[row["_file_id"]] = found.get(row["_file_id"], 0) + 1
    return found


def held(world: World) -> int:
    return len(world._table("_forebay/quarantine"))


@pytest.mark.deep
def test_records_of_the_later_version_wait_as_long_as_the_earlier_one_is_in_force(
    spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(spark, lake, monkeypatch, service=STRICT)
    earlier, later = world.file("a.json"), world.file("a.json", 2)
    world.answers = {"a.json": records(alpha=1)}
    world.try_batch(0, [earlier])
    world.answers, world.etags = {"a.json": records(alpha=3)}, {"a.json": later.etag}
    world.try_batch(1, [later])
    assert (in_alpha(world), held(world)) == ({later.file_id: 1}, 2)

    take_back(world, 0)
    assert in_alpha(world) == {earlier.file_id: 1}
    assert retried(world, Choice("quarantine", reason="expectation")) == Retried(2, superseded=2)
    assert (in_alpha(world), held(world)) == ({earlier.file_id: 1}, 2)

    take_back(world, 2)  # the undo: the later version's row is there again, and the others may join it
    assert retried(world, Choice("quarantine", reason="expectation")) == Retried(2, {"alpha": 2})
    assert (in_alpha(world), held(world)) == ({later.file_id: 3}, 0)

    take_back(world, 0)
    view = LakeView(world.lake)
    world.service = REPLACING
    mark(view, replay_of(view, FileChoice(), [f"s3://landing/{later.key}"]))
    world.try_batch(2, [later])
    assert in_alpha(world) == {later.file_id: 3}, "a replay puts the later version in force"
