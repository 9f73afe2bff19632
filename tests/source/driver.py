"""A driver that can be told to die: `python driver.py`, everything else in the environment. Run by test_crashes.

FOREBAY_TEST is a JSON object: `options` of the source, `checkpoint`, `out` (a folder for what arrived), and `die`: the point
at which it dies, once batch 2 is at it. Without `die` it runs until the queue is drained. With `planner_only`, the planner
alone is killed with SIGKILL, and the driver fails by an exception: its session can go on being used. Else the whole process
group is killed. The hooks are here, around the real objects; the source knows nothing of them.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from forebay.lake.objects import open_objects
from forebay.source.drain import Drain
from forebay.source.intake import Intake
from forebay.source.manifest import Manifest
from forebay.source.source import FileContentsReader, FileNames, FileNamesReader

TOLD: dict[str, Any] = json.loads(os.environ.get("FOREBAY_TEST", "{}"))
DIE, AT = TOLD.get("die"), 2


def die() -> None:
    """In the planner."""
    if TOLD.get("planner_only"):
        os.kill(os.getpid(), signal.SIGKILL)
    os.killpg(0, signal.SIGKILL)
    time.sleep(60)


class Killed(RuntimeError):
    """Stands for the SIGKILL of a driver that is to live on."""


def die_as_driver(told: dict[str, Any]) -> None:
    if told.get("planner_only"):
        raise Killed("killed where the test asked for it")
    die()


def die_but_for_the_planner() -> None:
    """The JVM and the Python driver go; this process, the planner, does not notice while it waits for the queue."""
    os.kill(TOLD["driver_pid"], signal.SIGKILL)
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(1)


class Dying(FileNamesReader):
    @property
    def _intake(self) -> Intake:
        if self._opened is None:
            intake = super()._intake
            poller = intake._gatherer._poller
            write, delete, fill = intake._manifests.write, intake._deletions.delete, poller.fill

            def write_and_die(manifest: Manifest) -> None:
                if manifest.number == AT and DIE == "after receive":
                    die()
                write(manifest)
                if manifest.number == AT and DIE == "after manifest":
                    die()

            def fill_and_die(*look: Any) -> None:
                fill(*look)
                if intake._last == AT - 1 and DIE == "while the planner receives":
                    die_but_for_the_planner()

            def delete_and_die(receipts: Any) -> None:
                if receipts and intake._last == AT and DIE == "before the delete":
                    die()
                if receipts and intake._last == AT and DIE == "in the middle of the delete":
                    intake._queue.delete(list(receipts)[:3], intake._requests)
                    die()
                delete(receipts)

            intake._manifests.write = write_and_die  # type: ignore[method-assign]
            intake._deletions.delete = delete_and_die  # type: ignore[method-assign]
            poller.fill = fill_and_die  # type: ignore[method-assign]
        return super()._intake

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Any:
        if start["manifest"] < AT <= end["manifest"] and DIE == "after the offset log":
            die()
        return super().partitions(start, end)


class DyingNamesReader(Dying, FileNamesReader):
    pass


class DyingContentsReader(Dying, FileContentsReader):
    pass


class DyingNames(FileNames):
    def streamReader(self, schema: Any) -> FileNamesReader:  # noqa: N802 (Spark's name)
        reader = super().streamReader(schema)
        reader.__class__ = DyingContentsReader if isinstance(reader, FileContentsReader) else DyingNamesReader
        return reader


def write_names(told: dict[str, Any]) -> Any:
    """A sink that is idempotent by batch id, as a table with txnVersion is."""
    out, point = Path(told["out"]), told.get("die")

    def write(frame: DataFrame, batch: int) -> None:
        names = [row.key for row in frame.select("key").collect()]
        dying = point if batch == AT - 1 else None
        aside = out / f".{batch}"
        aside.write_text(json.dumps(names[: len(names) // 2] if dying == "in foreachBatch" else names))
        if dying == "in foreachBatch":
            die_as_driver(told)
        aside.replace(out / f"{batch}.json")
        if dying == "after the tables":
            die_as_driver(told)

    return write


def run(spark: SparkSession, told: dict[str, Any], source: type[FileNames] = FileNames) -> str | None:
    """Runs the stream until it is drained."""
    spark.dataSource.register(source)
    drain = Drain(open_objects(told["options"]["manifestPath"]))
    drain.begin()
    stream = spark.readStream.format("s3-sqs").options(**told["options"], drain="true")
    if "fileFormat" in told["options"]:
        stream = stream.schema("key string")
    query = (
        stream.load()
        .writeStream.foreachBatch(write_names(told))
        .option("checkpointLocation", told["checkpoint"])
        .start()
    )
    try:
        return drain.wait(query)
    finally:
        query.stop()


def session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {
        "spark.master": "local[1]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    return SparkSession.builder.appName("file-tests").config(map=settings).getOrCreate()


if __name__ == "__main__":
    TOLD["driver_pid"] = os.getpid()
    print(run(session(), TOLD, DyingNames))
