"""The source as Spark drives it: rows, restarts, refusals, and the example that people copy."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import forebay.source
from forebay.events import NAMESPACE, Event, metric_name
from forebay.source.events import QueuePolled
from forebay.source.options import SourceOptions
from forebay.source.source import SCHEMA, FileNamesReader, register
from forebay_local.twin.twin import Twin
from tests.source.conftest import Queues
from tests.source.notices import body
from tests.source.stream import Stream


class Names(Stream):
    """A stream of names into memory, run after run on one checkpoint."""

    def __init__(self, spark: Any, queue: str, folder: Path) -> None:
        super().__init__(spark, folder)
        self.options = {"queueUrl": queue, "manifestPath": str(folder / "manifests"), "waitS": "0"}
        self.batches: list[tuple[int, list[Any]]] = []

    def start(self, **trigger: Any) -> Names:
        def take(frame: Any, batch: int) -> None:
            self.batches.append((batch, frame.collect()))

        stream = self.spark.readStream.format("s3-sqs").options(**self.options).load().writeStream
        stream = stream.trigger(**trigger) if trigger else stream
        self.query = stream.foreachBatch(take).option("checkpointLocation", str(self.folder / "checkpoint")).start()
        return self

    @property
    def found_so_far(self) -> Any:
        return self.batches

    def idle_triggers(self, count: int) -> None:
        """Lets Spark ask a few times more."""
        asks = ("Getting offsets", "Waiting for data")  # it waits for moments only, where the source does
        self.until(lambda: self.query.status["message"].startswith(asks))
        assert not self.query.awaitTermination(0.2 * count)

    @property
    def keys(self) -> list[str]:
        return [row.key for _, rows in self.batches for row in rows]


@pytest.fixture
def queue(queues: Queues) -> str:
    return queues.make(VisibilityTimeout="30")


@pytest.fixture
def names(spark: Any, queue: str, tmp_path: Path) -> Iterator[Names]:
    register(spark)
    names = Names(spark, queue, tmp_path)
    yield names
    names.stop()


def test_a_row_says_what_the_notification_said(names: Names, queues: Queues, queue: str) -> None:
    queues.send(queue, [body("in/ü a+b%.json", size=42, etag="abc", version="v7", sequencer="0055AED6DCD90281E5")])
    names.start().until(lambda: len(names.keys) == 1)
    [row] = [row for _, rows in names.batches for row in rows]
    assert row.asDict() | {"sent_at": None, "message_id": None} == {
        "bucket": "landing",
        "key": "in/ü a+b%.json",
        "size": 42,
        "etag": "abc",
        "version_id": "v7",
        "sequencer": "0055AED6DCD90281E5",
        "event_time": row.event_time,
        "sent_at": None,
        "receive_count": 1,
        "message_id": None,
    }
    moments = names.spark.createDataFrame([row]).selectExpr("unix_millis(event_time)", "unix_millis(sent_at)").first()
    assert datetime.fromtimestamp(moments[0] / 1000, UTC) == datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
    assert abs(datetime.now(UTC).timestamp() - moments[1] / 1000) < 600


@pytest.mark.deep
def test_a_restart_with_an_idle_queue_makes_no_empty_batch(names: Names, queues: Queues, queue: str) -> None:
    queues.send(queue, [body("in/a.json")])
    names.start().until(lambda: names.keys == ["in/a.json"])
    before = len(names.batches)
    names.until_committed(before)
    names.stop()
    names.start().idle_triggers(5)
    assert len(names.batches) == before
    queues.send(queue, [body("in/b.json")])
    names.until(lambda: "in/b.json" in names.keys)
    names.stop()
    assert (names.keys, len(names.batches)) == (["in/a.json", "in/b.json"], before + 1)


def test_messages_go_promptly_when_the_stream_is_idle_after_a_batch(names: Names, queues: Queues, queue: str) -> None:
    queues.send(queue, [body(f"in/{i}.json") for i in range(20)])
    names.start().until(lambda: len(names.keys) == 20)
    names.until(lambda: queues.left(queue) == (0, 0))


def test_a_look_that_is_under_way_when_the_query_stops_keeps_no_message_from_the_next_run(
    names: Names, queues: Queues, queue: str
) -> None:
    """The queue hands a message to a long poll whose caller is gone, and would hide it for the visibility timeout. It goes
    back; or it is in a manifest, where Spark ends the planner late, and the next run takes that at once."""
    names.options |= {"waitS": "3", "visibilityTimeoutS": "600"}
    queues.send(queue, [body("first.json")])
    names.start().until(lambda: names.keys == ["first.json"])
    names.until_committed(1)
    names.idle_triggers(1)
    names.stop()
    queues.send(queue, [body("late.json")])
    time.sleep(4)  # as long as the look takes, so that it has had the message if it takes it
    names.start().until(lambda: names.keys == ["first.json", "late.json"])


def test_availablenow_takes_one_batch_a_run_and_every_file_once(names: Names, queues: Queues, queue: str) -> None:
    names.options |= {"maxFilesPerBatch": "10", "visibilityTimeoutS": "5"}
    queues.send(queue, [body(f"in/{i:02d}.json") for i in range(25)])
    sizes = []
    while len(names.keys) < 25 and len(sizes) < 9:
        before = len(names.keys)
        names.start(availableNow=True)
        assert names.query.awaitTermination(60)
        sizes.append(len(names.keys) - before)
    assert max(sizes) == 10
    assert sorted(names.keys) == [f"in/{i:02d}.json" for i in range(25)]


def test_wrong_options_are_refused_at_load_all_by_name(names: Names) -> None:
    reader = names.spark.readStream.format("s3-sqs").options(waitS="99", order="up", colour="red")
    with pytest.raises(Exception, match=r"InvalidConfiguration") as refused:
        reader.load()
    text = str(refused.value)
    for words in (
        "queueUrl: is missing",
        "waitS: '99' is not allowed (allowed: 0 to 20, or a duration such as `5s`)",
        "order: 'up'",
        "colour: is not",
    ):
        assert words in text


def test_a_schema_of_ones_own_is_refused(names: Names) -> None:
    with pytest.raises(Exception, match="s3-sqs has its own columns"):
        names.spark.readStream.schema("name string").format("s3-sqs").options(
            **names.options
        ).load().writeStream.format("memory").queryName("own").start().awaitTermination(60)
    assert names.spark.readStream.format("s3-sqs").options(**names.options).load().columns == [
        column.split()[0] for column in SCHEMA.split(", ")
    ]


def test_the_numbers_of_each_look_become_metrics_where_an_option_says_so(
    twin: Twin, queues: Queues, queue: str, tmp_path: Path
) -> None:
    """In the planner's process, as Spark runs it, but without Spark."""
    service = f"source-{tmp_path.name}"
    queues.send(queue, [body("in/a.json"), body("in/b.json"), "nonsense"])
    options = {"queueUrl": queue, "manifestPath": str(tmp_path), "waitS": "0"}
    reader = FileNamesReader(SourceOptions.parse(options | {"metrics": "cloudwatch", "service": service}))
    assert reader.latestOffset(reader.initialOffset()) == {"manifest": 1}
    reader.stop()
    sums = {}
    for name in metrics_of(QueuePolled):
        asked = {"Namespace": NAMESPACE, "MetricName": name, "Dimensions": [{"Name": "service", "Value": service}]}
        span = {"StartTime": datetime(2020, 1, 1), "EndTime": datetime(2099, 1, 1), "Period": 86_400 * 365 * 60}
        points = twin.client("cloudwatch").get_metric_statistics(**asked, **span, Statistics=["Sum"])["Datapoints"]
        sums[name] = sum(point["Sum"] for point in points) if points else None
    assert (sums["QueuePolledReceived"], sums["QueuePolledFiles"], sums["QueuePolledKept"]) == (3, 2, 1)
    assert None not in sums.values()


def metrics_of(event: type[Event]) -> list[str]:
    return [metric_name(event, field.name) for field in fields(event) if "unit" in field.metadata]


def test_a_queue_that_does_not_exist_stops_the_query_with_its_url(names: Names, queue: str) -> None:
    names.options["queueUrl"] = queue + "-gone"
    names.start()
    with pytest.raises(Exception, match=r"queueUrl: .*-gone does not exist"):
        names.query.awaitTermination(120)


def test_the_example_of_ten_lines_works_as_it_stands(spark: Any, queues: Queues, queue: str, tmp_path: Path) -> None:
    assert forebay.source.__doc__ is not None
    lines = [line for line in forebay.source.__doc__.splitlines() if line.startswith("    ") or not line]
    example = textwrap.dedent("\n".join(lines)).strip()
    assert len([line for line in example.splitlines() if line and "import" not in line]) <= 10
    example = example.replace("https://sqs.eu-west-1.amazonaws.com/123456789012/landed", queue)
    example = example.replace("s3://my-lake", str(tmp_path))
    queues.send(queue, [body("in/a.json"), body("in/b.json")])
    told: dict[str, Any] = {}
    exec(example, told)
    try:
        for _ in range(300):
            assert not told["query"].awaitTermination(0.2)
            if list((tmp_path / "landed/names").glob("*.parquet")) and queues.left(queue) == (0, 0):
                break
        arrived = spark.read.parquet(str(tmp_path / "landed/names")).collect()
    finally:
        told["query"].stop()
    assert sorted(row.key for row in arrived) == ["in/a.json", "in/b.json"]
