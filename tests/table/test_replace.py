"""Rows of earlier files give way to new ones, while others change the table."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from delta.tables import DeltaTable
from pyspark.sql import functions as F

from forebay.table.commit import Txn
from forebay.table.destination import Appended, Destination, Skipped
from forebay.table.kernel import Seen, TableLogs
from forebay.table.replace import Staying, replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.mark.deep
def test_rows_are_made_anew_where_a_settle_changes_a_type_just_before_the_commit(
    spark: SparkSession, lake: str
) -> None:
    path, logs, asked = f"{lake}/a", TableLogs(spark), []
    spark.sql("SELECT 'old' _file_id, 1L level").write.format("delta").save(path)

    def rows(seen: Seen | None) -> DataFrame:
        assert seen is not None
        asked.append(seen.schema["level"].dataType.simpleString())
        made = spark.sql(f"SELECT 'new' _file_id, cast(2 as {asked[-1]}) level")
        if len(asked) == 1:
            settled = spark.read.format("delta").load(path).selectExpr("_file_id", "cast(level as string) level")
            settled.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
        return made

    outcome = replace(spark, Destination("a", path), ["old"], rows, txn=Txn("x", 1), logs=logs)
    assert isinstance(outcome, Appended)
    assert asked == ["bigint", "string"]
    assert [tuple(row) for row in spark.read.format("delta").load(path).collect()] == [("new", "2")]
    assert replace(spark, Destination("a", path), ["old"], rows, txn=Txn("x", 1), logs=logs) == Skipped()
    logs.close()


@pytest.mark.deep
def test_rows_of_very_many_files_leave_in_one_commit_and_new_columns_come(spark: SparkSession, lake: str) -> None:
    path, logs = f"{lake}/a", TableLogs(spark)
    ids = [f"old-{n}" for n in range(600)]
    kept = [("other", 1, "alpha"), ("old-1", 2, "beta"), ("old-2", 3, None), ("old-2", 4, "beta")]
    columns = "_file_id string, n long, table string"
    spark.createDataFrame(kept, columns).write.format("delta").partitionBy("table").save(path)
    more: dict[str, Any] = {"txn": Txn("x", 1), "logs": logs, "staying": Staying(["old-1"], ["beta"])}

    def rows(seen: Seen | None) -> DataFrame:
        return spark.sql("SELECT 'new' _file_id, 5L n, 'beta' table, named_struct('a', 1L) added")

    outcome = replace(spark, Destination("a", path), ids, rows, **more)
    assert isinstance(outcome, Appended)
    assert outcome.rows == 1
    assert replace(spark, Destination("a", path), ids, rows, **more) == Skipped()
    found = spark.read.format("delta").load(path).orderBy("n").selectExpr("_file_id", "n", "added.a").collect()
    assert [tuple(row) for row in found] == [("other", 1, None), ("old-1", 2, None), ("new", 5, 1)]
    gone = replace(spark, Destination("a", path), ids, None, txn=Txn("x", 2), logs=logs)
    assert isinstance(gone, Appended)
    assert gone.rows == 0
    logs.close()


def until(mark: Path) -> None:
    """Waits for the other side, which may have failed; that fails the test, and does not keep it for ever."""
    for _ in range(6_000):
        if mark.exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"{mark.name} was never reached")


@pytest.mark.deep
@pytest.mark.parametrize("ids", [2, 600])
def test_a_compaction_in_the_middle_of_it_is_met_and_nothing_is_lost_or_doubled(
    spark: SparkSession, lake: str, tmp_path: Path, ids: int
) -> None:
    path, logs, began, compacted = f"{lake}/a", TableLogs(spark), tmp_path / "began", tmp_path / "compacted"
    for n in range(4):
        kept = [(f"old-{n}", n), (f"other-{n}", 10 + n)]
        spark.createDataFrame(kept, "_file_id string, n long").coalesce(1).write.format("delta").mode("append").save(
            path
        )

    def compact() -> None:
        until(began)
        DeltaTable.forPath(spark.newSession(), path).optimize().executeCompaction()
        compacted.touch()

    def wait() -> int:
        began.touch()
        until(compacted)
        return 5

    def rows(seen: Seen | None) -> DataFrame:
        return spark.sql("SELECT 'new' _file_id, id n FROM range(1)").withColumn(
            "n", F.udf(lambda n: wait(), "long")("n")
        )

    Thread(target=compact, daemon=True).start()
    txn = Txn("x", 1)
    outcome = replace(spark, Destination("a", path), [f"old-{n}" for n in range(ids)], rows, txn=txn, logs=logs)
    assert isinstance(outcome, Appended)
    assert outcome.rows == 1
    found = sorted(tuple(row) for row in spark.read.format("delta").load(path).collect())
    standing = [("old-2", 2), ("old-3", 3)] if ids == 2 else []
    assert found == [("new", 5), *standing, *((f"other-{n}", 10 + n) for n in range(4))]
    steps = DeltaTable.forPath(spark, path).history().select("operation").collect()
    assert [row[0] for row in steps][1:2] == ["OPTIMIZE"]
    logs.close()
