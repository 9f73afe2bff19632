"""How much longer the whole way takes, from the queue to thirty tables and the ledger, than a job that one would write by
hand: read all files, parse them, append to one table partitioned by game.

In: a twin of its own, with files of nested JSON lines in its landing bucket and a message for each in its queue. Both jobs
run in one warm Spark session, read the same files and write to the same S3. The hand-written job keeps no account, knows
its files and its schema, and can lose or repeat data; ours ends when the ledger has every file. Out: `run()`'s figures in
seconds, and the bar. Both sides are counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from hashlib import md5
from pathlib import Path
from typing import Any

from forebay.batch.events import BatchCommitted
from forebay.events import Event
from forebay.landed_file import LandedFile
from forebay.settings import IngestSettings
from forebay_local.fabricate import body
from forebay_local.twin.twin import Twin, running
from tests.bench.bars import at_most
from tests.bench.processor import seconds as processor_seconds

BUCKET = "bench-landing"
SCHEMA = (
    "game string, event string, event_id string, event_time timestamp, session string, platform string, build string, "
    "player struct<id: string, level: long, country: string, position: struct<x: double, y: double>>, "
    "items array<struct<sku: string, amount: long>>"
)
SERVICE = """
name = "bench"
[[tables]]
name = "{game}"
columns = [
  { name = "event" }, { name = "event_id" }, { name = "event_time", type = "timestamp" }, { name = "session" },
  { name = "platform" }, { name = "build" }, { name = "player_id", path = "player.id" },
  { name = "level", type = "long", path = "player.level" }, { name = "country", path = "player.country" },
]
"""


def run(*, files: int = 100, records: int = 1_000_000, games: int = 30, rounds: int = 2) -> dict[str, Any]:
    """Figures and bars; the jobs take turns, and the first turn of each, on a tenth of the files, only warms up."""
    with tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder, running(Path(folder) / "twin") as twin:
        os.environ.update(twin.env)
        service = Path(folder) / "service.toml"
        service.write_text(SERVICE)
        landed = put_files(twin, files, records // files, games)
        from forebay.spark.session import session

        spark = session("bench-pipeline")
        try:
            contest = Contest(spark, twin, str(service), records // files)
            ways = {"by_hand": contest.by_hand, "ours": contest.ours}
            seconds: dict[str, list[float]] = {way: [] for way in ways}
            processor: dict[str, list[float]] = {way: [] for way in ways}
            for way in ways.values():
                way(landed[: max(1, files // 10)])
            for _ in range(rounds):
                for name, way in ways.items():
                    seconds[name].append(way(landed))
                    processor[name].append(contest.processor_s)
        finally:
            spark.stop()
    ours, by_hand = statistics.median(seconds["ours"]), statistics.median(seconds["by_hand"])
    ours_cpu, by_hand_cpu = statistics.median(processor["ours"]), statistics.median(processor["by_hand"])
    last = contest.committed[-1]
    figures = {
        "files": files,
        "records": records,
        "bytes": sum(file.size or 0 for file in landed),
        "games": games,
        "ours_s": ours,
        "by_hand_s": by_hand,
        "ours_rounds_s": seconds["ours"],
        "by_hand_rounds_s": seconds["by_hand"],
        "ours_cpu_s": ours_cpu,
        "by_hand_cpu_s": by_hand_cpu,
        "read_s": last.read_seconds,
        "write_s": last.write_seconds,
        "ledger_s": last.ledger_seconds,
    }
    bars = [
        at_most("times the job by hand", ours / by_hand, 0.9),
        at_most("times its CPU, without the twin's", ours_cpu / by_hand_cpu, 0.65),
    ]
    return {"name": "pipeline", "figures": figures, "bars": bars}


class Contest:
    """The same files, taken in by both jobs; each turn has a lake and a queue of its own."""

    def __init__(self, spark: Any, twin: Twin, service: str, records_per_file: int) -> None:
        self.spark, self.twin, self.service, self.records_per_file = spark, twin, service, records_per_file
        self.lakes = f"s3://{twin.lake_bucket}"
        self.turn = 0
        self.committed: list[BatchCommitted] = []
        self.processor_s = 0.0
        """CPU seconds of the last turn, without the twin's."""

    def ours(self, files: list[LandedFile], service: str = "") -> float:
        from forebay.jobs.ingest import ingest

        self.turn += 1
        lake = f"{self.lakes}/ours-{self.turn}"
        queue = self._queue(files)
        done: list[tuple[float, float]] = []

        def note(event: Event) -> None:
            if isinstance(event, BatchCommitted):
                self.committed.append(event)
                done.append(self._now())

        settings = IngestSettings(lake=lake, queue_url=queue, service=service or self.service, drain=True, wait_s=1)
        before, began = len(self.committed), self._now()
        ingest(settings, emit=note, stop=threading.Event())
        written = sum(event.written for event in self.committed[before:])
        assert written == len(files) * self.records_per_file, written
        return self._took(began, done[-1])

    def by_hand(self, files: list[LandedFile]) -> float:
        self.turn += 1
        table = f"s3a://{self.twin.lake_bucket}/by-hand-{self.turn}"
        began = self._now()
        rows = self.spark.read.schema(SCHEMA).json([f"s3a://{file.bucket}/{file.key}" for file in files])
        rows.write.format("delta").mode("append").partitionBy("game").save(table)
        took = self._took(began, self._now())
        count = self.spark.read.format("delta").load(table).count()
        assert count == len(files) * self.records_per_file, count
        return took

    def _now(self) -> tuple[float, float]:
        return time.perf_counter(), processor_seconds(without=self.twin.pid)

    def _took(self, began: tuple[float, float], ended: tuple[float, float]) -> float:
        self.processor_s = round(ended[1] - began[1], 2)
        return round(ended[0] - began[0], 3)

    def _queue(self, files: list[LandedFile]) -> str:
        sqs = self.twin.client("sqs")
        url = str(sqs.create_queue(QueueName=f"bench-{self.turn}")["QueueUrl"])
        for file in files:
            sqs.send_message(QueueUrl=url, MessageBody=body([file]))
        return url


def put_files(twin: Twin, files: int, records: int, games: int, prefix: str = "in") -> list[LandedFile]:
    """Ten different contents, each under many keys: what both jobs cost does not depend on it."""
    s3 = twin.client("s3")
    if BUCKET not in {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}:
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": twin.region})
    contents = [content_of(n, records, games) for n in range(min(10, files))]

    def put(n: int) -> LandedFile:
        content = contents[n % len(contents)]
        key = f"{prefix}/{n:04}.json"
        etag = s3.put_object(Bucket=BUCKET, Key=key, Body=content)["ETag"].strip('"')
        return LandedFile(BUCKET, key, len(content), etag)

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(put, range(files)))


def content_of(seed: int, records: int, games: int) -> bytes:
    return "".join(_line(seed * records + n, games) for n in range(records)).encode()


def _line(n: int, games: int) -> str:
    return (
        json.dumps(
            {
                # Games differ in size: the largest has about a fifth of the records.
                "game": f"game_{int((n * 7919 % 1000 / 1000) ** 2 * games):02}",
                "event": f"event_{n % 17}",
                "event_id": str(uuid.UUID(bytes=md5(b"%d" % n, usedforsecurity=False).digest(), version=4)),
                "event_time": f"2026-11-21T{n % 24:02}:{n % 60:02}:{n % 59:02}Z",
                "session": f"session-{n // 50}",
                "platform": ("ios", "android", "pc", "console")[n % 4],
                "build": f"1.{n % 9}.{n % 30}",
                "player": {
                    "id": f"player-{n * 31 % 50_000}",
                    "level": n % 60,
                    "country": ("DE", "FR", "JP", "US", "BR")[n % 5],
                    "position": {"x": n % 977 / 7, "y": n % 883 / 3},
                },
                "items": [{"sku": f"sku-{(n + i) % 50}", "amount": i + 1} for i in range(n % 3)],
            },
            separators=(",", ":"),
        )
        + "\n"
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    for name, default in (("files", 100), ("records", 1_000_000), ("games", 30), ("rounds", 2)):
        options.add_argument(f"--{name}", type=int, default=default)
    print(json.dumps(run(**vars(options.parse_args()))))


if __name__ == "__main__":
    main()
