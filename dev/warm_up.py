"""The JVM writes the classes that a run loads into an archive. The next runs map it into memory and start in half the time.

In: the archive's path. It runs a little of everything that a batch does, in a session as `forebay` makes it. The JVM writes
the archive when it ends. It uses the archive only with exactly the classpath that the archive was made with.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


def main(archive: str) -> None:
    os.environ["FOREBAY_JAVA_OPTIONS"] = f"-XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit={archive}"
    from forebay.spark.session import session

    spark = session("forebay-warm-up")
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    with tempfile.TemporaryDirectory() as folder:
        run(spark, Path(folder))
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # the JVM ends when its last connection closes
    gateway.proc.wait()


def run(spark, folder: Path) -> None:  # type: ignore[no-untyped-def]
    from delta.tables import DeltaTable
    from pyspark.sql import functions as F

    table = str(folder / "table")
    (folder / "in").mkdir()
    (folder / "in" / "a.json").write_text('{"game": "alpha", "n": 1}\n{"game": "beta", "n": 2}\n')

    def take(frame, _: int) -> None:  # type: ignore[no-untyped-def]
        parsed = frame.select(F.from_json("value", "game string, n long").alias("record")).select("record.*").persist()
        parsed.groupBy("game").count().collect()
        parsed.write.format("delta").partitionBy("game").mode("append").save(table)

    stream = spark.readStream.text(str(folder / "in")).writeStream.foreachBatch(take)
    stream.option("checkpointLocation", str(folder / "checkpoint")).trigger(
        availableNow=True
    ).start().awaitTermination()
    delta = DeltaTable.forPath(spark, table)
    more = spark.createDataFrame([("beta", 3), ("gamma", 4)], "game string, n long")
    merge = delta.alias("t").merge(more.alias("m"), "t.game = m.game")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    delta.optimize().executeCompaction()
    spark.read.format("delta").load(table).orderBy("n").toArrow()


if __name__ == "__main__":
    main(*sys.argv[1:])
