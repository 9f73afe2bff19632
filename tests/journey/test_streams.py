"""Whoever reads a table as a stream, while an operator corrects it: new rows come once, and a copy stays equal."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from forebay.operate.lake_view import LakeView
from tests.batch.downstream import Downstream
from tests.journey.story import Story, event, lines
from tests.operate.command import given

SERVICE = """
name = "studio"
[[tables]]
name = "{game}"
properties = { "delta.enableChangeDataFeed" = "true" }
"""


@pytest.mark.deep
def test_a_stream_gets_every_new_row_once_and_a_copy_follows_each_correction(
    told: Story, spark: SparkSession, tmp_path: Path
) -> None:
    told.service = str(tmp_path)
    (tmp_path / "service.toml").write_text(SERVICE)
    consumer, ever = Downstream(spark, f"{told.lake}/alpha", tmp_path / "consumer"), Counter[tuple[object, ...]]()

    def then(*command: str) -> None:
        if command:
            assert given((*command, "--yes", "--lake", told.lake, "--queue-url", told.queue_url), "")[0] == 0
        assert told.run().differences() == []
        consumer.follow()
        there = "select _file_id, _line, _batch, arrow_cast(_ingested_at, 'Int64') as at from t"
        rows = Counter(tuple(row.values()) for row in told.rows("alpha", there))
        ever.update(rows.keys() - ever.keys())
        assert (consumer.came, +consumer.stands, -consumer.stands) == (ever, rows, Counter())
        copied = DeltaTable(consumer.copy).to_pyarrow_table(columns=["event_id"])["event_id"].to_pylist()
        assert sorted(copied) == sorted(row["event_id"] for row in told.rows("alpha"))

    for number in (1, 2):
        told.put(f"{number}.json", lines([event("alpha", number * 10 + n) for n in range(2)]))
    then()
    first, second = (f"s3://{told.bucket}/in/{number}.json" for number in (1, 2))
    before = LakeView(told.lake).facts("alpha")
    assert before is not None
    then("replay", "--file", first)
    then("files", "forget", second)
    then("rollback", "alpha", "--to", str(before.version))
    then("replay", "--file", second)
    assert (ever.total(), (+consumer.stands).total()) == (8, 4)
