"""Change events of databases, in the order of the database's own log."""

from __future__ import annotations

import threading

import pytest
from pyspark.sql import SparkSession

from forebay.declaration.loading import parse_service
from forebay.merge.job import Merger
from forebay.operate.lake_view import LakeView
from forebay.table.kernel import TableLogs
from tests.batch.world import World
from tests.test_examples import EXAMPLES


@pytest.mark.deep
def test_changes_of_mysql_are_ordered_across_the_files_of_its_log(
    spark: SparkSession, lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All in one millisecond, and positions begin anew in the second file. A truncate is parked."""
    text = (EXAMPLES / "debezium-mysql" / "service.toml").read_text()
    content = (EXAMPLES / "debezium-mysql" / "samples" / "changes.jsonl").read_bytes()
    truncate = b'{"op": "t", "before": null, "after": null, "source": {"file": "binlog.1000001", "pos": 4}}\n'
    world = World(spark, lake, monkeypatch, service=text, answers={"a.jsonl": content + truncate})
    world.try_batch(0, [world.file("a.jsonl")])
    logs = TableLogs(spark)
    Merger(spark, lake.removeprefix("file://"), logs=logs, emit=world.events.append, at_once=1).run(
        parse_service({"service.toml": text}), (), threading.Event()
    )
    logs.close()
    rows = LakeView(lake).query("orders", "select id, state from t order by id")
    assert [(row["id"], row["state"]) for row in rows] == [(1, "paid"), (3, "new")]
    assert world.kept("parked") == {"a.jsonl": 1}
