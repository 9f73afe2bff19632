"""`spark.readStream.format("s3-sqs")`: the intake, in the shape that Spark asks for.

The options are checked when `load()` is called. Spark then pickles the source into a separate process on the driver, the
planner. The intake lives there, and makes its clients on first use. Tasks get their rows inside their partitions, and touch
neither queue nor manifest. `stop()` may never come: nothing depends on it.

How Spark 4.1 drives this, read in its MicroBatchExecution, AcceptsLatestSeenOffsetHandler and PythonMicroBatchStream:

* Where a checkpoint exists, a run begins with `partitions(last, last)`, `last` being the newest entry of the offset
  log, whether that batch was committed or not. If it was not, `partitions(before, last)` follows and the batch runs
  once more.
* `latestOffset` is asked only while no batch is under construction, that is after the last one's entry in the commit
  log was written. A question is therefore the news that the last answer is committed. `commit(end)` says the same,
  later: it comes when the next batch is built.
* Offsets are compared as JSON text. The same number gives the same text, so a run that finds nothing makes no batch.
  Only the very first run has an empty batch 0 when there is nothing: for Spark, "no offset yet" differs from any
  offset.
* Trigger.AvailableNow is Trigger.Once for a Python source: one question, one batch, and the messages of that batch are
  deleted in the next run. (With `spark.sql.streaming.triggerAvailableNowWrapper.enabled` it asks before it says where it was,
  and once more for its metrics. A batch that is given out for that is the first one of the next run.) `drain` is the mode to
  empty a queue.
* It starts several Python processes for one stream, and each imports this module. One of them polls the queue, and only
  streams with `fileFormat` read files. So what polls and what reads is imported where it is used: a third of a second less.
* Asynchronous progress tracking skips entries of the offset log. `partitions(3, 7)` is several batches in one; still
  all of them, each once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from forebay.aws.cloudwatch import CloudWatch
from forebay.errors import InvalidConfiguration
from forebay.events import Journal, to_log
from forebay.source.options import MANIFESTS, SourceOptions
from forebay.source.shutdown import Shutdown, is_planner
from forebay.spark.python_worker import spare_repeats

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from forebay.source.contents import Layout
    from forebay.source.intake import Intake
    from forebay.source.manifest import AnnouncedFile

SCHEMA = (
    "bucket string, key string, size bigint, etag string, version_id string, sequencer string, event_time timestamp, "
    "sent_at timestamp, receive_count int, message_id string"
)


def register(spark: SparkSession, *, manifests: str = "") -> None:
    """Makes `format("s3-sqs")` known to this session. Harmless when run twice. Under `manifests` each queue has its
    manifests, unless a query says otherwise.

    A zip from `--py-files` is on the path of the driver and of tasks, but not on that of the planner: Spark starts it
    with the environment that the session had when the source was registered.
    """
    environment = spark.sparkContext.environment
    paths = [str(Path(__file__).parents[2]), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    if manifests:
        environment[MANIFESTS] = manifests
    spark.dataSource.register(FileNames)


class FileNames(DataSource):
    """Names of files that landed in S3, from the SQS queue that S3 announces them to."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._checked = SourceOptions.parse(options)

    @classmethod
    def name(cls) -> str:
        return "s3-sqs"

    def schema(self) -> str:
        if self._checked.file_format:
            raise InvalidConfiguration.one("schema", "fileFormat needs one", "call .schema(...) before .load()")
        return SCHEMA

    def streamReader(self, schema: StructType) -> FileNamesReader:  # noqa: N802 (Spark's name)
        if self._checked.file_format:
            from forebay.source.contents import Layout

            return FileContentsReader(self._checked, Layout.of(schema, self._checked))
        columns = [column.split()[0] for column in SCHEMA.split(", ")]
        if schema.names != columns:
            raise InvalidConfiguration.one(
                "schema", "s3-sqs has its own columns without fileFormat", f"they are {SCHEMA}"
            )
        return FileNamesReader(self._checked)


@dataclass
class Names(InputPartition):
    """The rows of one batch on their way to a task: Arrow, since pickling thousands of objects costs more than all the
    rest of a trigger."""

    rows: bytes


class FileNamesReader(DataSourceStreamReader):
    """Numbers of batches for offsets; everything else is the intake's."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._opened: Intake | None = None
        self._metrics: CloudWatch | None = None
        self._shutdown: Shutdown | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Tasks get a copy; clients and threads stay here.
        return {"_options": self._options, "_opened": None, "_metrics": None, "_shutdown": None}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 (Spark's name)
        return _offset(0)

    def latestOffset(self, start: dict[str, int] | None = None, limit: Any = None) -> dict[str, int]:  # noqa: N802
        # Spark 4.2 says where it is with every question; its limits are ours already, as options.
        intake = self._intake
        with self._question():
            if start is not None and _number(start) > 0:
                intake.resume(_number(start))
            return _offset(intake.next_batch())

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [Names(_as_arrow(rows)) for rows in self._batches(start, end)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        import pyarrow as pa

        assert isinstance(partition, Names)
        spare_repeats()
        with pa.ipc.open_stream(partition.rows) as rows:
            yield from rows

    def commit(self, end: dict[str, int]) -> None:
        intake = self._intake
        with self._question():
            intake.committed(_number(end))

    def stop(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None
        if self._metrics is not None:
            Journal().last_words(self._metrics.flush)

    def _batches(self, start: dict[str, int], end: dict[str, int]) -> list[tuple[AnnouncedFile, ...]]:
        intake, upto = self._intake, _number(end)
        with self._question():
            intake.resume(upto)
            return intake.rows(_number(start), upto)

    @property
    def _intake(self) -> Intake:
        from forebay.source.opening import open_intake

        if self._opened is None:
            if is_planner():
                self._shutdown = Shutdown(self.stop)
                self._shutdown.expect()
            self._opened = open_intake(self._options, emit=self._journal(), told_to_end=self._told_to_end)
        return self._opened

    def _told_to_end(self) -> bool:
        return self._shutdown is not None and self._shutdown.requested

    def _question(self) -> AbstractContextManager[None]:
        return self._shutdown.question() if self._shutdown else nullcontext()

    def _journal(self) -> Journal:
        from forebay.source.opening import client_of_metrics

        self._metrics = CloudWatch.to(self._options.metrics, client_of_metrics)
        return Journal(to_log(), *filter(None, [self._metrics]))


class FileContentsReader(FileNamesReader):
    """The same batches; their tasks yield the records instead of the names."""

    def __init__(self, options: SourceOptions, layout: Layout) -> None:
        super().__init__(options)
        self._layout = layout

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_layout": self._layout}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        from forebay.source.contents import dealt

        files = [row for rows in self._batches(start, end) for row in rows]
        return [Names(_as_arrow(hand)) for hand in dealt(files, self._options.read_tasks)]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        from forebay.content.fetch import Retrying, s3_of_this_process
        from forebay.source.contents import LIMITS, landed, rows_of

        get = Retrying.over_s3(s3_of_this_process(LIMITS.files_in_flight), LIMITS)
        for names in super().read(partition):
            yield from rows_of(landed(names), self._layout, self._options, get, Journal(to_log()))


def _offset(number: int) -> dict[str, int]:
    return {"manifest": number}


def _number(offset: dict[str, int]) -> int:
    return offset["manifest"]


def _as_arrow(rows: Sequence[AnnouncedFile]) -> bytes:
    import pyarrow as pa

    moment = pa.timestamp("us", tz="UTC")
    columns = {
        "bucket": pa.array([row.file.bucket for row in rows], pa.string()),
        "key": pa.array([row.file.key for row in rows], pa.string()),
        "size": pa.array([row.file.size for row in rows], pa.int64()),
        "etag": pa.array([row.file.etag for row in rows], pa.string()),
        "version_id": pa.array([row.file.version_id for row in rows], pa.string()),
        "sequencer": pa.array([row.file.sequencer for row in rows], pa.string()),
        "event_time": pa.array([row.file.event_time for row in rows], moment),
        "sent_at": pa.array([row.sent_at for row in rows], moment),
        "receive_count": pa.array([row.receive_count for row in rows], pa.int32()),
        "message_id": pa.array([row.message_id for row in rows], pa.string()),
    }
    batch = pa.RecordBatch.from_pydict(columns)
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = stream.getvalue().to_pybytes()
    return content
