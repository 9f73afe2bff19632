"""A compaction job that dies: `python -m tests.upkeep.compaction.on_spark.driver POINT LAKE WAY`. Dying is SIGKILL to the whole
process group, as when a machine is lost; or `Killed`, at points where nothing of Spark's is under way."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forebay.upkeep.compaction.carry_out as carry_out
import forebay.upkeep.compaction.job as job
import forebay.upkeep.compaction.work as work
from forebay.settings import CompactSettings, MaintainSettings

Patch = Callable[[Any, str, Any], None]


class Killed(RuntimeError):
    """Stands for SIGKILL in a process that is to live on."""


def die(*_: Any, **__: Any) -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)


def raise_killed(*_: Any, **__: Any) -> None:
    raise Killed


def when(true: Callable[[], bool]) -> None:
    """Dies as soon as it is true."""

    def watch() -> None:
        while not true():
            time.sleep(0.001)
        die()

    threading.Thread(target=watch, daemon=True).start()


def data_files(lake: Path) -> int:
    return len(list((lake / "alpha").rglob("*.parquet")))


def while_files_are_written(lake: Path) -> None:
    before = data_files(lake)
    when(lambda: data_files(lake) > before)


def between_two_commits(patch: Patch) -> None:
    patch(work, "PARTITIONS_AT_ONCE", 1)
    real = carry_out.Engine._attempt

    def attempt(self: Any, one: Any) -> Any:
        real(self, one)
        raise_killed()

    patch(carry_out.Engine, "_attempt", attempt)


def before_it_is_told(patch: Patch) -> None:
    patch(job, "_report", raise_killed)


def while_files_are_deleted(lake: Path) -> None:
    before = data_files(lake)
    when(lambda: data_files(lake) < before)


IN_PROCESS: dict[str, Callable[[Patch], None]] = {
    "between two commits": between_two_commits,
    "before it is told": before_it_is_told,
}


def main(point: str, lake: str, service: str) -> None:
    place = Path(lake)
    if point == "while files are deleted":
        from forebay.upkeep.maintenance.job import maintain

        while_files_are_deleted(place)
        maintain(MaintainSettings(lake=lake, service=service), emit=lambda event: None)
    else:
        while_files_are_written(place)
        job.compact(CompactSettings(lake=lake, service=service, now=True), emit=lambda event: None)


if __name__ == "__main__":
    main(*sys.argv[1:])
