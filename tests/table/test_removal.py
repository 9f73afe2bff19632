"""Rows leave a table for others, which a later batch may replace in turn; a driver that wakes up late takes nothing of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from forebay.table.commit import Txn
from forebay.table.destination import Destination
from forebay.table.removal import remove

AT = datetime(2026, 11, 21, 10, 30, 1, 123456, tzinfo=UTC)
COLUMNS = "_file_id string, _batch long, _ingested_at timestamp"


def add(spark: SparkSession, path: str, *rows: tuple[object, ...]) -> None:
    spark.createDataFrame(rows, COLUMNS).coalesce(1).write.format("delta").mode("append").save(path)


def batches(spark: SparkSession, path: str) -> list[int | None]:
    return sorted((row[0] for row in spark.read.format("delta").load(path).select("_batch").collect()), key=str)


@pytest.mark.parametrize("ids", [1, 600])
def test_a_removal_happens_once_and_takes_neither_its_own_batchs_rows_nor_a_later_ones(
    spark: SparkSession, lake: str, ids: int
) -> None:
    path, file_ids = f"{lake}/a", [f"f{n}" for n in range(ids)]
    table, txn = Destination("a", path), Txn("forebay/s/g", 7)
    add(spark, path, ("f0", 3, AT), ("f0", 7, AT.replace(year=2025)), ("f0", None, None), ("other", 3, AT))
    add(spark, path, ("f0", 7, AT))  # by an earlier try, whose answer was lost
    assert remove(spark, table, file_ids, txn=txn, began_at=AT) is None
    assert batches(spark, path) == [3, 7]
    removed = DeltaTable.forPath(spark, path).history(1).first()
    add(spark, path, ("f0", 8, AT))
    assert remove(spark, table, file_ids, txn=txn, began_at=AT) is None
    assert batches(spark, path) == [3, 7, 8]
    assert removed is not None
    assert removed.operation in ("DELETE", "MERGE")
