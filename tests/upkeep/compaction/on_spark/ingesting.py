"""A driver of its own that appends as ingest does, and another hand in it that merges, while somebody else compacts:
`python -m tests.upkeep.compaction.on_spark.ingesting TABLE BATCHES`. Says how often its merges met a conflict."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from forebay.spark.session import session
from forebay.table.commit import Txn
from forebay.table.destination import Appended, Destination
from forebay.table.kernel import TableLogs
from tests.table.appending import append

ROWS, OLD_ROWS, MERGES = 50, 400, 5


def main(path: str, batches: str) -> None:
    spark = session("ingesting")
    conflicts: list[str] = []
    merging = threading.Thread(target=merge, args=(spark, path, range(MERGES), conflicts))
    merging.start()
    ingest(spark, path, range(int(batches)))
    merging.join()
    print(len(conflicts))


def ingest(spark: SparkSession, path: str, batches: Iterable[int]) -> None:
    logs = TableLogs(spark)
    for batch in batches:
        first = OLD_ROWS + batch * ROWS
        rows = spark.range(first, first + ROWS, 1, 1).selectExpr("'t' _table", "id", "id % 7 v", "id % 2 part")
        outcome = append(spark, rows, [Destination("t", path)], txn=Txn("ingesting", batch), logs=logs)["t"]
        assert isinstance(outcome, Appended), outcome
    logs.close()


def merge(spark: SparkSession, path: str, numbers: Iterable[int], conflicts: list[str]) -> None:
    """Adds 1 to some of the old rows, again and again; each time until it is in."""
    for number in numbers:
        some = f"id < {OLD_ROWS} AND id % {MERGES} = {number % MERGES}"
        while True:
            try:
                spark.sql(f"UPDATE delta.`{path}` SET v = v + 1 WHERE {some}")
                break
            except (PySparkException, Py4JJavaError) as met:
                if "Concurrent" not in str(met):
                    raise
                conflicts.append(type(met).__name__)


if __name__ == "__main__":
    main(*sys.argv[1:])
