"""Rows of earlier files give way to new ones, while others change the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay.table.commit import Txn
from forebay.table.destination import Appended, Destination, Skipped
from forebay.table.kernel import Seen, TableLogs
from forebay.table.replace import replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
