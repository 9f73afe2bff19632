"""How long a small file takes from its put to its rows, in a stream that runs; and how long its batch takes.

In: a twin, and one stream of `forebay ingest` that polls all the time. One file after the other is put and announced, each when
the last one is in; then twenty at a time, for eleven tables. Out: `run()`'s figures in seconds, and the bars. The end of a file
is the ledger's commit: its rows could be read before.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from forebay.batch.events import BatchCommitted
from forebay.events import Event
from forebay.landed_file import LandedFile
from forebay.settings import IngestSettings
from forebay_local.fabricate import body
from forebay_local.twin.twin import Twin, running
from tests.bench.bars import at_most
from tests.bench.pipeline import BUCKET, SERVICE, content_of

AT_ONCE, TABLES = 20, 11


def run(*, files: int = 40, records: int = 50, warm_up: int = 10) -> dict[str, Any]:
    """Figures and bars. The first files only warm up."""
    with tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder, running(Path(folder) / "twin") as twin:
        os.environ.update(twin.env)
        service = Path(folder) / "service.toml"
        service.write_text(SERVICE)
        stream = _Stream(twin, str(service))
        took = [stream.put([content_of(n, records, 3)]) for n in range(warm_up + files)][warm_up:]
        for n in range(2 * AT_ONCE):
            stream.put([content_of(AT_ONCE * n + one, records, TABLES) for one in range(AT_ONCE)])
        seconds = [event.seconds for event in stream.stop()]
        batches, together = seconds[warm_up : warm_up + files], statistics.median(seconds[-AT_ONCE:])
    p50, p99 = statistics.median(took), sorted(took)[max(0, -(-len(took) * 99 // 100) - 1)]
    batch = statistics.median(batches)
    figures = {"files": files, "records": records, "p50_s": round(p50, 3), "p99_s": round(p99, 3)}
    bars = [
        at_most("put to queryable, p50", p50, 1),
        at_most("put to queryable, p99", p99, 3),
        at_most("a warm batch of one file", batch, 0.3),
        at_most(f"a batch of {AT_ONCE} files and {TABLES} tables", together, 0.8),
    ]
    figures |= {"batch_s": round(batch, 3), "batch_of_many_s": round(together, 3)}
    return {"name": "latency", "figures": figures, "bars": bars}


class _Stream:
    """One job in a thread of this process."""

    def __init__(self, twin: Twin, service: str) -> None:
        from forebay.jobs.ingest import ingest
        from forebay.spark.session import session

        session("bench-latency")
        self.twin, self.s3, self.sqs = twin, twin.client("s3"), twin.client("sqs")
        self.s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": twin.region})
        self.queue = str(self.sqs.create_queue(QueueName="bench-latency")["QueueUrl"])
        self.committed: list[BatchCommitted] = []
        self.numbers = count()
        self.ends: SimpleQueue[float] = SimpleQueue()
        self.asked = threading.Event()
        lake = f"s3://{twin.lake_bucket}/latency"
        settings = IngestSettings(lake=lake, queue_url=self.queue, service=service, drain=False, trigger_s=0)
        self.thread = threading.Thread(target=ingest, args=(settings,), kwargs={"emit": self._note, "stop": self.asked})
        self.thread.start()

    def put(self, contents: list[bytes]) -> float:
        """Seconds until these files are in. One message names all of them, so they are in one batch."""
        began, files = time.perf_counter(), []
        for content in contents:
            key = f"in/{next(self.numbers):05}.json"
            etag = self.s3.put_object(Bucket=BUCKET, Key=key, Body=content)["ETag"].strip('"')
            files.append(LandedFile(BUCKET, key, len(content), etag))
        self.sqs.send_message(QueueUrl=self.queue, MessageBody=body(files))
        return self.ends.get(timeout=120) - began

    def stop(self) -> list[BatchCommitted]:
        self.asked.set()
        self.thread.join()
        return self.committed

    def _note(self, event: Event) -> None:
        if isinstance(event, BatchCommitted):
            self.committed.append(event)
            self.ends.put(time.perf_counter())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    for name, default in (("files", 40), ("records", 50)):
        options.add_argument(f"--{name}", type=int, default=default)
    print(json.dumps(run(**vars(options.parse_args()))))


if __name__ == "__main__":
    main()
