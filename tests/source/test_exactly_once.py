"""Any order of arrivals, duplicates, triggers, waits and crashes: every file exactly once, and nothing left on the
queue.

Spark is played by a few lines: an offset log, a commit log, tables that are idempotent by batch id, and the order in
which MicroBatchExecution touches them. A crash can come between any two of its steps, or just before or after the
manifest.
"""

from __future__ import annotations

import itertools
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.lake.objects import open_objects
from forebay.source.intake import Intake
from forebay.source.manifest import Manifest
from forebay.source.options import SourceOptions
from forebay.source.queue import Queue
from tests.source.fake_sqs import URL, FakeSqs
from tests.source.notices import body

STEPS = ["before manifest", "after manifest", "offset logged", "tables written", "committed"]


class Killed(BaseException):
    """Nothing may catch it, as nothing catches SIGKILL."""


class AtOnce(Executor):
    """What would run in the background runs now, so that a story always ends the same way."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(work(*args, **kwargs))
        return done


class Spark:
    """One checkpoint and one table, over many runs."""

    def __init__(self, sqs: FakeSqs, folder: str) -> None:
        self.sqs, self.folder = sqs, folder
        self.offsets: list[int] = []
        self.commits = 0  # how many batches
        self.tables: dict[int, list[str]] = {}
        self.die: str | None = None
        self.intake: Intake | None = None
        self.runs: list[Intake] = []

    def start(self) -> None:
        options = SourceOptions.parse(
            {
                "queueUrl": URL,
                "manifestPath": self.folder,
                "waitS": "0",
                "maxFilesPerBatch": "3",
                "fetchParallelism": "1",
            }
        )
        queue = Queue(self.sqs, URL, visibility_timeout_s=300)
        self.intake = Intake(
            options, queue, open_objects(self.folder), emit=lambda event: None, clock=lambda: self.sqs.now
        )
        self.runs.append(self.intake)
        write = self.intake._manifests.write

        def write_or_die(manifest: Manifest) -> None:
            self.step("before manifest")
            write(manifest)
            self.step("after manifest")

        self.intake._gatherer._thread = AtOnce()  # type: ignore[assignment]
        self.intake._manifests.write = write_or_die  # type: ignore[method-assign]
        if self.offsets:
            self.intake.resume(self.offsets[-1])
            if self.commits < len(self.offsets):
                self.run_batch()

    def step(self, name: str) -> None:
        if self.die == name:
            self.die = None
            raise Killed

    def trigger(self) -> None:
        try:
            if self.intake is None:
                self.start()
            assert self.intake is not None
            offset = self.intake.next_batch()
            if not self.offsets or offset != self.offsets[-1]:
                self.offsets.append(offset)
                self.step("offset logged")
                if len(self.offsets) > 1:
                    self.intake.committed(self.offsets[-2])
                self.run_batch()
        except Killed:
            self.intake = None

    def run_batch(self) -> None:
        assert self.intake is not None
        start = self.offsets[-2] if len(self.offsets) > 1 else 0
        rows = self.intake.rows(start, self.offsets[-1])
        self.tables[len(self.offsets) - 1] = [row.file.key for batch in rows for row in batch]
        self.step("tables written")
        self.commits = len(self.offsets)
        self.step("committed")

    def close(self) -> None:
        for run in self.runs:
            run.close()


sends = st.tuples(st.just("send"), st.lists(st.integers(0, 30), min_size=1, max_size=4))
triggers = st.tuples(st.just("trigger"), st.none())
crashes = st.tuples(st.just("die at"), st.sampled_from(STEPS))
waits = st.tuples(st.just("wait"), st.sampled_from([1, 100, 400]))
losses = st.tuples(st.just("lose deletions"), st.booleans())


@settings(max_examples=150, deadline=None)
@given(st.lists(sends | triggers | crashes | waits | losses, max_size=40))
def test_every_file_arrives_exactly_once_and_the_queue_ends_empty(story: list[tuple[str, Any]]) -> None:
    sqs, announced = FakeSqs(), set()
    with tempfile.TemporaryDirectory() as folder:
        spark = Spark(sqs, str(Path(folder) / "manifests"))
        try:
            for what, how in story:
                if what == "send":
                    keys = [f"in/{number}.json" for number in how]
                    announced.update(keys)
                    sqs.send(body(*keys))
                elif what == "trigger":
                    spark.trigger()
                elif what == "die at":
                    spark.die = how
                elif what == "wait":
                    sqs.pass_s(how)
                else:
                    sqs.lose = (lambda message_id: "InternalError") if how else (lambda message_id: None)
            sqs.lose, spark.die = lambda message_id: None, None
            for _ in itertools.count():
                assert _ < 200, "it never comes to rest"
                spark.trigger()
                assert spark.intake is not None
                spark.intake.flush()
                sqs.pass_s(400)
                if not sqs.messages:
                    break
            spark.trigger()
        finally:
            spark.close()
    arrived = Counter(key for keys in spark.tables.values() for key in keys)
    assert arrived == Counter(announced)
