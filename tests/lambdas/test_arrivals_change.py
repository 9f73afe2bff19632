"""A day of a service with one freshness: arrivals change, and runs follow.

The function that starts runs is the deployed one, with all that it reads and writes, and the job's notes are those of the job.
Only Glue and the time are made up: a start takes 90 seconds, and 1,000 files take a minute.
"""

from __future__ import annotations

import io
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from forebay.batch.events import BatchCommitted
from forebay.capacity.rules import Rules
from forebay.jobs.pacing import Pacing
from forebay.lake.objects import open_objects
from lambdas.start_ingest.starting import Settings, start

BEGAN = datetime(2026, 5, 1, tzinfo=UTC).timestamp()
FRESHNESS_S, STEP_S = 300, 5
RULES = Rules(FRESHNESS_S)
CHECKPOINT = "_forebay/checkpoints/ingest"
SETTINGS = Settings(
    job="ingest",
    queue_url="q",
    checkpoint=f"s3://lake/{CHECKPOINT}",
    lake="s3://lake",
    alarm_topic="arn:topic",
    freshness_s=FRESHNESS_S,
)
OTHERS = dict.fromkeys(("bytes", "records", "written", "quarantined", "parked", "tables"), 0)
SECONDS: Any = dict.fromkeys(("claim_seconds", "read_seconds", "write_seconds", "ledger_seconds"), 0.0)


def moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


class S3:
    class exceptions:  # noqa: N801
        class NoSuchKey(Exception):
            pass

    def __init__(self, bucket: Path) -> None:
        self.bucket = bucket

    def get_object(self, *, Bucket: str, Key: str) -> Any:  # noqa: N803
        if not (self.bucket / Key).exists():
            raise self.exceptions.NoSuchKey
        return {"Body": io.BytesIO((self.bucket / Key).read_bytes())}

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> None:  # noqa: N803
        (self.bucket / Key).parent.mkdir(parents=True, exist_ok=True)
        (self.bucket / Key).write_bytes(Body)

    def get_paginator(self, _: str) -> Any:
        return SimpleNamespace(paginate=lambda **_: [{}])


class Day:
    """The account: what landed, the queue, and Glue with the job."""

    exceptions = SimpleNamespace(ConcurrentRunsExceededException=RuntimeError)

    def __init__(self, bucket: Path) -> None:
        self.s3, self.stop = S3(bucket), bucket / CHECKPOINT / "stop"
        self.store, self.now = open_objects(str(bucket / CHECKPOINT)), BEGAN
        self.queue, self.late = deque[float](), list[float]()
        self.runs, self.said = list[dict[str, Any]](), list[str]()
        self.free_at = self.idle_since = self.takes_until = 0.0

    # --- Glue and SQS, as the function sees them ---

    def get_job(self, **_: Any) -> Any:
        about = {"Name": "ingest", "WorkerType": "G.1X", "NumberOfWorkers": 2, "GlueVersion": "6.0", "Role": "ingest"}
        command = {"ScriptLocation": "ingest.py"}
        return {"Job": {"LastModifiedOn": moment(0), "Command": command, "DefaultArguments": {}, **about}}

    def get_job_runs(self, **_: Any) -> Any:
        return {"JobRuns": self.runs[::-1]}

    def start_job_run(self, **asked: Any) -> None:
        run: dict[str, Any] = {
            "JobRunState": "RUNNING",
            "StartedOn": moment(self.now),
            "Arguments": asked.get("Arguments", {}),
        }
        self.runs.append(run)
        self.free_at = self.idle_since = self.now + 90
        self.takes_until = self.free_at + int(run["Arguments"].get("--drain_cap_s", 0))
        self.pacing = Pacing(self.store, clock=lambda: self.now)

    def get_queue_attributes(self, **_: Any) -> Any:
        held = "ApproximateNumberOfMessagesNotVisible"
        return {"Attributes": {"ApproximateNumberOfMessages": str(len(self.queue)), held: "0"}}

    # --- time ---

    def pass_time(self, hours: float, every_s: float = 0, files: int = 1) -> list[dict[str, Any]]:
        """So many files land at such intervals. The runs that began meanwhile."""
        before, until, next_at = len(self.runs), self.now + 3600 * hours, self.now
        while self.now < until:
            while every_s and next_at <= self.now:
                self.queue.extend([next_at] * files)
                next_at += every_s
            self.work()
            if not (self.now - BEGAN) % RULES.look_every_s:
                clients = {"glue": self, "sqs": self, "s3": self.s3, "sns": None}
                self.said.append(start(SETTINGS, **clients, now=moment(self.now)))
            self.now += STEP_S
        return self.runs[before:]

    @property
    def at_work(self) -> bool:
        return bool(self.runs) and self.runs[-1]["JobRunState"] == "RUNNING"

    def work(self) -> None:
        if not self.at_work or self.now < self.free_at:
            return
        drains = "--drain" in self.runs[-1]["Arguments"]
        is_drained = not self.queue and self.now - self.idle_since > 20
        if self.stop.exists() or (drains and (is_drained or self.now > self.takes_until)):
            self.stop.unlink(missing_ok=True)
            self.pacing.flush()
            self.runs[-1] |= {"JobRunState": "SUCCEEDED", "CompletedOn": moment(self.now)}
        elif self.queue:
            files = min(2000, len(self.queue))
            seconds = 10 + 0.05 * files
            began, self.now = self.now, self.now + seconds
            self.late += [self.now - self.queue.popleft() for _ in range(files)]
            self.pacing(BatchCommitted(service="s", batch=1, files=files, seconds=seconds, **OTHERS, **SECONDS))
            self.now, self.idle_since = began, began + seconds
            self.free_at = began + max(seconds, 0 if drains else RULES.batch_every_s)


@pytest.fixture
def day(tmp_path: Path) -> Day:
    return Day(tmp_path)


def kinds(runs: list[dict[str, Any]]) -> set[str]:
    return {"drain" if "--drain" in run["Arguments"] else "stay" for run in runs}


def test_runs_drain_stay_on_end_and_rest_as_arrivals_change_and_files_are_in_time(day: Day) -> None:
    assert day.pass_time(1) == [], "nothing starts while nothing waits"
    quiet = day.pass_time(2, every_s=120)
    assert kinds(quiet) == {"drain"}
    assert 10 < len(quiet) < 40

    busy = day.pass_time(2, every_s=1, files=8)
    assert kinds(busy[-1:]) == {"stay"}
    assert day.at_work
    assert len(busy) < 5, "a run that stays on needs no others"

    quiet = day.pass_time(2, every_s=120)
    assert "drains achieve the freshness again: the run was asked to stop after its batch" in day.said
    assert kinds(quiet) == {"drain"}
    rest = day.pass_time(4)
    assert len(rest) <= 1
    assert (day.at_work, len(day.queue)) == (False, 0)
    assert set(day.said[-180:]) == {"nothing waits"}
    in_time = sum(late <= FRESHNESS_S for late in day.late) / len(day.late)
    assert in_time > 0.99
    assert max(day.late) < 2 * FRESHNESS_S


def test_files_that_come_while_the_job_starts_belong_to_that_run(day: Day) -> None:
    """A look during a start begins no second run."""
    day.queue.append(day.now)
    day.pass_time(125 / 3600)
    started = [said for said in day.said if said == "started"]
    day.queue.extend([day.now] * 5)
    day.pass_time(1)
    assert (len(started), len(day.runs), len(day.late)) == (1, 1, 6)
