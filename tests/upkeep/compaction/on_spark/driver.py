"""A compaction job that dies: `python -m tests.upkeep.compaction.on_spark.driver POINT LAKE WAY`. Dying is SIGKILL to the whole
process group, as when a machine is lost."""

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

__all__ = ["POINTS"]


def die(*_: Any, **__: Any) -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)


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


def between_two_commits(_: Path) -> None:
    work.PARTITIONS_AT_ONCE = 1
    real = carry_out.Engine._attempt

    def attempt(self: Any, one: Any) -> Any:
        answer = real(self, one)
        die()
        return answer

    carry_out.Engine._attempt = attempt  # type: ignore[method-assign]


def before_it_is_told(_: Path) -> None:
    job._tell = die


def while_files_are_deleted(lake: Path) -> None:
    before = data_files(lake)
    when(lambda: data_files(lake) < before)


POINTS: dict[str, Callable[[Path], None]] = {
    "while files are written": while_files_are_written,
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
        POINTS[point](place)
        job.compact(CompactSettings(lake=lake, service=service, now=True), emit=lambda event: None)


if __name__ == "__main__":
    main(*sys.argv[1:])
