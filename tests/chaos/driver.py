"""A driver that dies at a named point: `python -m tests.chaos.driver POINT queue_url=... lake=...`

The points are put around the real functions here, so that nothing in the product knows of them. Dying is SIGKILL to the whole
process group: the driver, its JVM and the source's planner go at once, as when a machine is lost.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import forebay.batch.batch as batch
import forebay.batch.writing as writing
import forebay.jobs.ingest as job
import forebay.lake.lease as lease
import forebay.table.fan_out as fan_out
from forebay.settings import IngestSettings
from forebay.table.kernel import TableLogs

__all__ = ["LEASE_S", "POINTS"]

LEASE_S = 5.0


def die() -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)


def die_after(owner: Any, name: str, nth: int = 1) -> None:
    _around(owner, name, nth, before=False)


def die_before(owner: Any, name: str, nth: int = 1) -> None:
    _around(owner, name, nth, before=True)


def _around(owner: Any, name: str, nth: int, *, before: bool) -> None:
    real, calls, lock = getattr(owner, name), [0], threading.Lock()

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with lock:
            calls[0] += 1
            mine = calls[0] == nth
        if mine and before:
            die()
        answer = real(*args, **kwargs)
        if mine:
            die()
        return answer

    setattr(owner, name, wrapped)


def shorten_the_lease() -> None:
    """So that whoever comes after a dead driver need not wait a minute."""
    real = lease.hold
    job.hold = lambda folder, *, wait_s: real(folder, wait_s=wait_s, lasts_s=LEASE_S)  # type: ignore[attr-defined]


def _announce_then_wait() -> None:
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
POINTS: dict[str, Callable[[], None]] = {
    "when the batch begins": lambda: die_before(batch.Batch, "process"),
    "after the files are claimed": lambda: die_before(batch, "read_routed"),
    "after the files are read": lambda: die_after(batch, "count_fates"),
    "after the data files are written": lambda: die_after(fan_out, "write_files"),
    "after table 1 of 3": lambda: die_after(TableLogs, "_commit", 1),
    "after table 2 of 3": lambda: die_after(TableLogs, "_commit", 2),
    "after the last table": lambda: die_after(TableLogs, "_commit", 3),
    "after the quarantine": lambda: die_after(TableLogs, "_commit", 4),
    "after the parked records": lambda: die_after(TableLogs, "_commit", 5),
    "after the ledger": lambda: die_after(TableLogs, "_commit", 6),
    "after the batch, before Spark's commit log": lambda: die_after(batch.Batch, "process"),
    "in the second batch": lambda: die_before(batch.Batch, "process", 2),
    "replacing: after the earlier rows left table 1 of 2": lambda: die_after(writing, "replace", 1),
    "replacing: after the earlier rows left all tables": lambda: die_before(writing.Writing, "write_own", 3),
    "replacing: after the ledger": lambda: die_after(writing, "replace", 3),
    "never": lambda: None,
    "never, but it sleeps after its first table": _announce_then_wait,
}


def main(point: str, *settings: str) -> None:
    POINTS[point]()
    shorten_the_lease()
    given = dict(setting.split("=", 1) for setting in settings)
    job.ingest(
        IngestSettings(drain=True, wait_s=1, tables_at_once=1, **given),  # type: ignore[arg-type]
        emit=lambda event: None,
        stop=threading.Event(),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
