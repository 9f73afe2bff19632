"""What a driver's memory does over five hundred batches: nothing.

In: a twin, and a continuous stream of small files, each batch with a few tables' rows, some dirty and one that came before;
`--dedupe` has the tables leave that one out. The job runs as it does anywhere, in this process with its JVM and the source's
planner. Memory is measured when the first fifth of the batches has warmed everything up, and at the end: after a pause, since
Spark's pools hold on to a task for a minute after its end, and a garbage collection. Out: `run()`'s figures, and the bars.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from forebay.batch.events import BatchCommitted
from forebay.events import Event
from forebay.landed_file import LandedFile
from forebay.settings import IngestSettings
from forebay_local.fabricate import body
from forebay_local.twin.twin import Twin, running
from tests.bench.bars import at_most

BUCKET = "bench-landing"
MIB = 1 << 20
LIMIT_MIB = 50
PAUSE_S = 70
DEDUPE = """
name = "games"
[[tables]]
name = "{game}"
columns = [{ name = "event_id" }]
dedupe = { by = ["event_id"], days = 3 }
"""


def run(*, batches: int = 500, dedupe: bool = False) -> dict[str, Any]:
    """Figures and bars: what each part has grown by since a fifth of the batches had run."""
    with tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder, running(Path(folder) / "twin") as twin:
        os.environ.update(twin.env)
        twin.client("s3").create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": twin.region})
        from forebay.spark.session import session

        spark = session("bench-endurance")
        try:
            watch = _Watch(spark, batches)
            (Path(folder) / "service.toml").write_text(DEDUPE)
            _run(twin, f"file://{folder}/lake", batches, watch, folder if dedupe else "")
        finally:
            spark.stop()
    early, late = watch.early, watch.late
    figures = {"batches": batches, "dedupe": dedupe, "seconds": watch.seconds, "early_mib": early, "late_mib": late}
    bars = []
    for name in early:
        grown = round(late[name] - early[name], 1)
        bars.append(at_most(f"{name}: MiB grown", grown, LIMIT_MIB, digits=1))
    return {"name": "endurance", "figures": figures, "bars": bars}


class _Watch:
    """Measures when a fifth of the batches is done, and when all are."""

    def __init__(self, spark: Any, batches: int) -> None:
        self.spark, self.batches, self.done = spark, batches, 0
        self.stop = threading.Event()
        self.next = threading.Semaphore(0)
        self.early: dict[str, float] = {}
        self.late: dict[str, float] = {}
        self.began = time.monotonic()
        self.seconds = 0.0

    def __call__(self, event: Event) -> None:
        if not isinstance(event, BatchCommitted):
            return
        self.done += 1
        if self.done == max(1, self.batches // 5):
            self.early = measured(self.spark)
        if self.done == self.batches:
            self.late = measured(self.spark)
            self.seconds = round(time.monotonic() - self.began, 1)
            self.stop.set()
        self.next.release()


def measured(spark: Any, pause_s: float = PAUSE_S) -> dict[str, float]:
    """The driver's own heap in Python and in the JVM, after a collection, and all that its helpers hold."""
    time.sleep(pause_s)
    gc.collect()
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    for _ in range(3):
        runtime.gc()
        time.sleep(0.2)
    heap = runtime.totalMemory() - runtime.freeMemory()
    planner = [pid for pid in _descendants(os.getpid()) if "python_streaming_source_runner" in _command(pid)]
    return {
        "driver in Python": round(_resident(os.getpid()) / MIB, 1),
        "driver in the JVM": round(heap / MIB, 1),
        "planner of the source": round(sum(map(_resident, planner)) / MIB, 1),
    }


def _run(twin: Twin, lake: str, batches: int, watch: _Watch, service: str) -> None:
    from forebay.jobs.ingest import ingest

    sqs = twin.client("sqs")
    queue = str(sqs.create_queue(QueueName="bench-endurance")["QueueUrl"])
    settings = IngestSettings(lake=lake, queue_url=queue, service=service, trigger_s=0, wait_s=1, max_files_per_batch=1)

    def feed() -> None:
        s3 = twin.client("s3")
        for n in range(batches):
            if n >= 2:
                watch.next.acquire()
            lines = [{"game": f"game_{i % 3}", "event": "tick", "event_id": f"{n - (i == 0)}-{i}"} for i in range(20)]
            content = ("\n".join(map(json.dumps, lines)) + "\n{broken\n").encode()
            key = f"in/{n:05}.json"
            etag = s3.put_object(Bucket=BUCKET, Key=key, Body=content)["ETag"].strip('"')
            sqs.send_message(QueueUrl=queue, MessageBody=body([LandedFile(BUCKET, key, len(content), etag)]))

    feeding = threading.Thread(target=feed, daemon=True)
    feeding.start()
    ingest(settings, emit=watch, stop=watch.stop)
    feeding.join(10)
    assert watch.done >= batches, watch.done


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for child in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split():
        found += [int(child), *_descendants(int(child))]
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--batches", type=int, default=500)
    options.add_argument("--dedupe", action="store_true")
    print(json.dumps(run(**vars(options.parse_args()))))


if __name__ == "__main__":
    main()
