"""Drivers that end at a named point.

`dying(point)` raises `Killed` there in this process, and lets no table be committed after it; the session stays warm.
`python -m tests.chaos.driver POINT queue_url=... lake=...` is killed with SIGKILL instead: the driver, its JVM and the source's
planner go at once, as when a machine is lost. The points are put around the real functions here; the product knows none of
them.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import forebay.batch.batch as batch
import forebay.batch.commits as commits
import forebay.batch.writing as writing
import forebay.jobs.ingest as job
import forebay.lake.lease as lease
import forebay.table.removal as removal
from forebay.batch.attempt.beginning import Beginning
from forebay.batch.one_pass.driver import OnePass
from forebay.batch.plan import Plans
from forebay.settings import IngestSettings
from forebay.table.kernel import TableLogs

LEASE_S = 5.0


class Killed(RuntimeError):
    """Stands for SIGKILL in a process that is to live on."""


def kill_the_process_group() -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)


def raise_killed() -> None:
    raise Killed("killed where the test asked for it")


class Death:
    """Comes once, at the nth call of a function. Afterwards that function and all commits only die again: threads that would
    go on in this process would not in one that was killed."""

    def __init__(self, die: Callable[[], None]) -> None:
        self._die, self._dead = die, False
        self._replaced: list[tuple[Any, str, Any]] = []
        self._lock = threading.Lock()

    def after(self, owner: Any, name: str, nth: int = 1) -> None:
        self._around(owner, name, nth, before=False)

    def before(self, owner: Any, name: str, nth: int = 1) -> None:
        self._around(owner, name, nth, before=True)

    def no_commit_after(self) -> None:
        self._around(TableLogs, "_commit", -1, before=True)

    def undo(self) -> None:
        for owner, name, real in reversed(self._replaced):
            setattr(owner, name, real)

    def _around(self, owner: Any, name: str, nth: int, *, before: bool) -> None:
        real, calls = getattr(owner, name), [0]

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                calls[0] += 1
                mine = calls[0] == nth
                self._dead |= mine and before
                dead = self._dead
            if dead:
                self._die()
            answer = real(*args, **kwargs)
            if mine:
                self._dead = True
                self._die()
            return answer

        self._replaced.append((owner, name, real))
        setattr(owner, name, wrapped)


@contextmanager
def dying(point: str) -> Iterator[None]:
    """A run of the job inside ends with `Killed` at the point."""
    death = Death(raise_killed)
    try:
        death.no_commit_after()
        POINTS[point](death)
        yield
    finally:
        death.undo()


def shorten_the_lease() -> None:
    """So that whoever comes after a dead driver need not wait a minute."""
    job.hold = partial(lease.hold, lasts_s=LEASE_S)  # type: ignore[attr-defined]


def _announce_then_wait(_: Death) -> None:
    """Says on stdout that the first table is in, and waits for a line on stdin before it goes on."""
    real, told = TableLogs._commit, threading.Event()

    def commit(*args: Any, **kwargs: Any) -> Any:
        answer = real(*args, **kwargs)
        if not told.is_set():
            told.set()
            print("FIRST TABLE IS IN", flush=True)
            sys.stdin.readline()
        return answer

    TableLogs._commit = commit  # type: ignore[method-assign]


# The batch writes three tables, the quarantine, the parked records and the ledger, one after the other.
POINTS: dict[str, Callable[[Death], None]] = {
    "when the batch begins": lambda death: death.before(batch.Batch, "process"),
    "after the files are claimed": lambda death: death.before(Beginning, "begun"),
    "after the files are read": lambda death: death.after(OnePass, "of"),
    "after the data files are written": lambda death: death.after(writing.Writing, "stage"),
    "after the plan is durable": lambda death: death.after(Plans, "pin"),
    "after table 1 of 3": lambda death: death.after(TableLogs, "_commit", 1),
    "after table 2 of 3": lambda death: death.after(TableLogs, "_commit", 2),
    "after the last table": lambda death: death.after(TableLogs, "_commit", 3),
    "after the quarantine": lambda death: death.after(TableLogs, "_commit", 4),
    "after the parked records": lambda death: death.after(TableLogs, "_commit", 5),
    "after the ledger": lambda death: death.after(TableLogs, "_commit", 6),
    "after the batch, before Spark's commit log": lambda death: death.after(batch.Batch, "process"),
    "in the second batch": lambda death: death.before(batch.Batch, "process", 2),
    "replacing: after the earlier rows left table 1 of 2": lambda death: death.after(removal, "remove", 1),
    "replacing: after the earlier rows left all tables": lambda death: death.before(
        writing.Writing, "commit_quarantine"
    ),
    "replacing: after the ledger": lambda death: death.after(commits, "replace", 1),
    "never, but it sleeps after its first table": _announce_then_wait,
}


def main(point: str, *settings: str) -> None:
    POINTS[point](Death(kill_the_process_group))
    shorten_the_lease()
    given = dict(setting.split("=", 1) for setting in settings)
    job.ingest(
        IngestSettings(drain=True, wait_s=1, tables_at_once=1, **given),  # type: ignore[arg-type]
        emit=lambda event: None,
        stop=threading.Event(),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
