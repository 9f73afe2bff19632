"""How fast the source is, against a bare boto3 loop in the same run; prints one line of JSON.

It takes some minutes and a queue of 100,000 messages; with `--small` a minute and 10,000, and noisier numbers. The queue is
the twin's, one Python process that has a core to itself for the bare loop, and shares two cores with Spark for the source.
Both make the same requests (ten messages received, with their age and count; ten deleted), with as many threads. The
source's time runs from the end of its first batch to the last deletion: what was received in that time is a batch less, what
was deleted a batch more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from forebay_local.twin.clients import KEY
from tests.bench.bars import at_least, at_most

ROOT = Path(__file__).parents[2]
PARALLELISM = 8
REGION = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "eu-west-1"}


@dataclass(frozen=True)
class Size:
    """How much to measure."""

    rounds: int
    files_a_round: int
    backlog: int
    triggers: int


FULL = Size(rounds=3, files_a_round=20_000, backlog=100_000, triggers=20)
SMALL = Size(rounds=1, files_a_round=10_000, backlog=10_000, triggers=5)


def run(size: Size = FULL) -> dict[str, Any]:
    """All figures, and the bars they have to hold."""
    with twin() as endpoint, tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder, session(endpoint) as spark:
        bench = Bench(spark, endpoint, Path(folder))
        ratios, bare, alone, ours = [], [], [], []
        drain = bench.source_files_per_s(size.backlog)  # first, since a JVM spends its first minutes on its compiler
        for _ in range(size.rounds):  # in turns, so that a busy machine is busy for both
            bare.append(bench.bare_files_per_s(size.files_a_round))
            alone.append(bench.intake_files_per_s(size.files_a_round))
            ours.append(bench.source_files_per_s(size.files_a_round).files_per_s)
            ratios.append(ours[-1] / bare[-1])
        idle_ms = bench.empty_trigger_ms(size.triggers)
        one_file_ms = bench.one_file_ms(size.triggers)
    figures = {
        "files_per_s": round(median(ours)),
        "bare_files_per_s": round(median(bare)),
        "without_spark_files_per_s": round(median(alone)),
        "load": round(os.getloadavg()[0], 1),
        "backlog": size.backlog,
        "backlog_files_per_s": round(drain.files_per_s),
        "planner_rss_first_mb": round(drain.rss_first_mb),
        "planner_rss_most_mb": round(drain.rss_most_mb),
    }
    bars = [
        at_least("files_per_s_vs_bare", median(ratios), 0.8),
        at_least("full_vs_nearly_empty_queue", drain.early_vs_late, 0.8),
        at_most("planner_growth_mb", drain.rss_most_mb - drain.rss_first_mb, 100),
        at_most("empty_trigger_ms", idle_ms, 50),
        at_most("one_file_batch_ms", one_file_ms, 400),
    ]
    return {"name": "source", "figures": figures, "bars": bars}


@dataclass
class Drained:
    """One queue taken to its end through the source."""

    batches: list[tuple[float, int]] = field(default_factory=list)  # when it was done, and how many files
    ended: float = 0.0
    rss_mb: list[float] = field(default_factory=list)

    @property
    def files_per_s(self) -> float:
        """From the end of the first batch, whose start-up is not the source's, to the last deletion."""
        return sum(files for _, files in self.batches[1:]) / (self.ended - self.batches[0][0])

    @property
    def early_vs_late(self) -> float:
        """The speed of the first third of the batches against that of the last."""
        spans = [(b[0] - a[0]) / b[1] for a, b in zip(self.batches, self.batches[1:], strict=False) if b[1] >= 1000]
        third = max(1, len(spans) // 3)
        return median(spans[-third:]) / median(spans[:third])

    @property
    def rss_first_mb(self) -> float:
        return self.rss_mb[0]

    @property
    def rss_most_mb(self) -> float:
        return max(self.rss_mb)


class Bench:
    def __init__(self, spark: Any, endpoint: str, folder: Path) -> None:
        self.spark, self.endpoint, self.folder = spark, endpoint, folder
        self.sqs = self.client()

    def client(self) -> Any:
        import boto3
        from botocore.config import Config

        return boto3.client(
            "sqs",
            endpoint_url=self.endpoint,
            region_name="eu-west-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(max_pool_connections=PARALLELISM * 2),
        )

    def queue(self, files: int = 0) -> str:
        url: str = self.sqs.create_queue(QueueName=f"q-{uuid.uuid4().hex}")["QueueUrl"]

        def send(first: int) -> None:
            entries = [
                {"Id": str(i), "MessageBody": notification(f"in/game/{i:08d}.json")}
                for i in range(first, min(files, first + 10))
            ]
            self.sqs.send_message_batch(QueueUrl=url, Entries=entries)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(send, range(0, files, 10)))
        return url

    def left(self, url: str) -> int:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(int(found[name]) for name in names)

    def bare_files_per_s(self, files: int) -> float:
        """Receive ten, delete ten, in as many threads as the source has; nothing is read or remembered."""
        from forebay.aws.announce import AGAIN

        url, count, lock = self.queue(files), [0], threading.Lock()
        asked = {
            "MaxNumberOfMessages": 10,
            "VisibilityTimeout": 300,
            "MessageSystemAttributeNames": ["SentTimestamp", "ApproximateReceiveCount"],
            "MessageAttributeNames": [AGAIN],
        }

        def work() -> None:
            while True:
                got = self.sqs.receive_message(QueueUrl=url, **asked)
                entries = [
                    {"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(got.get("Messages", ()))
                ]
                if not entries:
                    return
                self.sqs.delete_message_batch(QueueUrl=url, Entries=entries)
                with lock:
                    count[0] += len(entries)

        started = time.perf_counter()
        with ThreadPoolExecutor(PARALLELISM) as pool:
            for worker in [pool.submit(work) for _ in range(PARALLELISM)]:
                worker.result()
        assert count[0] == files
        return files / (time.perf_counter() - started)

    def intake_files_per_s(self, files: int) -> float:
        """All of the source but Spark: what is lost to it shows, apart from what Spark needs of the machine."""
        from forebay.source.opening import open_intake
        from forebay.source.options import SourceOptions

        url, taken, last = self.queue(files), 0, 0
        folder = self.folder / url.rpartition("/")[2]
        options = {"queueUrl": url, "manifestPath": str(folder), "fetchParallelism": str(PARALLELISM), "waitS": "0"}
        intake = open_intake(SourceOptions.parse(options), emit=lambda event: None)
        started = time.perf_counter()
        while taken < files:
            after, last = last, intake.next_batch()
            taken += sum(map(len, intake.rows(after, last)))
        intake.next_batch()
        assert intake.flush(60)
        took_s = time.perf_counter() - started
        intake.close()
        return files / took_s

    def source_files_per_s(self, files: int) -> Drained:
        url, drained = self.queue(files), Drained()

        def take(frame: Any, _: int) -> None:
            count = len(frame.select("key").collect())  # every name reaches the driver
            if count:
                drained.batches.append((time.perf_counter(), count))
                drained.rss_mb.append(planner_rss_mb())

        with self.stream(url, take, wait_s=0):
            wait_until(lambda: sum(count for _, count in drained.batches) >= files)
            wait_until(lambda: self.left(url) == 0, look_every_s=0.02)
            drained.ended = time.perf_counter()
        assert sum(count for _, count in drained.batches) == files
        return drained

    def empty_trigger_ms(self, triggers: int) -> float:
        """All that a trigger takes that finds the queue empty: Spark, the planner, one request."""
        with self.stream(self.queue(), lambda frame, batch: None, wait_s=0) as query:
            wait_until(lambda: len(idle(query)) > triggers)
            return median(idle(query)[-triggers:])

    def one_file_ms(self, triggers: int) -> float:
        """From the sending of one message to the names of its batch in foreachBatch's hands."""
        url, arrived, took = self.queue(), threading.Event(), []

        def take(frame: Any, _: int) -> None:
            if frame.collect():
                arrived.set()

        with self.stream(url, take, wait_s=5) as query:
            wait_until(lambda: query.lastProgress is not None)
            for number in range(triggers + 3):
                time.sleep(0.3)
                arrived.clear()
                started = time.perf_counter()
                self.sqs.send_message(QueueUrl=url, MessageBody=notification(f"in/{number}.json"))
                assert arrived.wait(60)
                took.append((time.perf_counter() - started) * 1000)
        return median(took[3:])  # the first ones warm Spark up

    @contextmanager
    def stream(self, url: str, take: Callable[[Any, int], None], *, wait_s: int) -> Iterator[Any]:
        name = url.rpartition("/")[2]
        query = (
            self.spark.readStream.format("s3-sqs")
            .option("queueUrl", url)
            .option("manifestPath", str(self.folder / name / "manifests"))
            .option("fetchParallelism", PARALLELISM)
            .option("waitS", wait_s)
            .load()
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", str(self.folder / name / "checkpoint"))
            .start()
        )
        try:
            yield query
        finally:
            query.stop()


def idle(query: Any) -> list[float]:
    return [
        progress["durationMs"]["triggerExecution"]
        for progress in query.recentProgress
        if progress["numInputRows"] == 0 and "addBatch" not in progress["durationMs"]
    ]


def wait_until(seen: Callable[[], bool], *, look_every_s: float = 0.05, at_most_s: float = 900) -> None:
    until = time.monotonic() + at_most_s
    while not seen():
        assert time.monotonic() < until, "not seen in time"
        time.sleep(look_every_s)


def notification(key: str) -> str:
    return json.dumps(
        {
            "Records": [
                {
                    "eventVersion": "2.1",
                    "eventSource": "aws:s3",
                    "awsRegion": "eu-west-1",
                    "eventTime": "2026-01-02T03:04:05.678Z",
                    "eventName": "ObjectCreated:Put",
                    "userIdentity": {"principalId": "AWS:AIDAINPONIXQXHT3IKHL2"},
                    "requestParameters": {"sourceIPAddress": "10.0.0.1"},
                    "responseElements": {"x-amz-request-id": "C3D13FE58DE4C810", "x-amz-id-2": "F" * 76},
                    "s3": {
                        "s3SchemaVersion": "1.0",
                        "configurationId": "landed",
                        "bucket": {"name": "landing", "arn": "arn:aws:s3:::landing"},
                        "object": {
                            "key": key,
                            "size": 70_000,
                            "eTag": uuid.uuid4().hex,
                            "sequencer": "0055AED6DCD90281E5",
                        },
                    },
                }
            ]
        }
    )


def planner_rss_mb() -> float:
    """Of the one process that hosts the source, found by its module's name below this process."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            command = (status.parent / "cmdline").read_bytes()
            if b"python_streaming_source_runner" in command and descends_from(int(status.parent.name), os.getpid()):
                return int(status.read_text().split("VmRSS:")[1].split()[0]) / 1024
        except (FileNotFoundError, ProcessLookupError, IndexError):
            continue
    raise AssertionError("no planner is running")


def descends_from(process: int, ancestor: int) -> bool:
    while process > 1:
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        if process == ancestor:
            return True
    return False


@contextmanager
def twin() -> Iterator[str]:
    command = [sys.executable, "-m", "forebay_local.twin.server", "--port", "0", "--with-parent", str(os.getpid())]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "glue_jobs"), KEY: REGION["AWS_ACCESS_KEY_ID"]}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as server:
        assert server.stdout is not None
        yield server.stdout.readline().split()[1]
        server.terminate()


@contextmanager
def session(endpoint: str) -> Iterator[Any]:
    os.environ.update(REGION, AWS_ENDPOINT_URL=endpoint, PYTHONPATH=str(ROOT / "glue_jobs"))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    from forebay.source.source import register

    settings = {
        "spark.master": "local[1]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.sql.streaming.noDataProgressEventInterval": "0",
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    spark = SparkSession.builder.appName("bench-source").config(map=settings).getOrCreate()
    register(spark)
    try:
        yield spark
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "glue_jobs"))
    parser = argparse.ArgumentParser(description="The speed of the s3-sqs source.")
    parser.add_argument(
        "--small", action="store_true", help="a minute instead of several, and 10,000 messages instead of 100,000"
    )
    print(json.dumps(run(SMALL if parser.parse_args().small else FULL)))
