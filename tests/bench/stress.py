"""Three drivers at one table in S3 for minutes on end: one appends as ingest does, one merges, one compacts; then every row is
counted.

Each is a process with a JVM of its own, and they meet nowhere but in the table's log. In: how many minutes. Out: `run()`'s
figures (how much each did, and how often it was outrun), and bars that allow no row too few, too many, or with a wrong value.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forebay_local.twin.twin import running
from tests.bench.bars import at_least, at_most

ROOT = Path(__file__).resolve().parents[2]
ROLES = ("append", "merge", "compact")
WAYS = ('compaction = { way = "rewrite", files = 1 }', "", 'compaction = { order_by = ["id"] }')
SMALL_MACHINE = {"spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "1g"}


def run(*, minutes: float = 5) -> dict[str, Any]:
    """Figures and bars."""
    with tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder, running(Path(folder) / "twin") as twin:
        os.environ.update(twin.env)
        lake = f"s3://{twin.lake_bucket}/stress"
        first = _Role("append", lake, folder, minutes)
        first.wait_for("begun")
        said = {role.name: role.result() for role in [first, *(_Role(r, lake, folder, minutes) for r in ROLES[1:])]}
        wrong = _counted(f"{lake}/alpha", said["append"]["batches"], said["merge"]["merges"])
    figures = {f"{role}_{name}": value for role, told in said.items() for name, value in told.items()}
    none = [*wrong.items(), ("compactions that failed", said["compact"]["failed"])]
    bars = [at_most(name, value, 0) for name, value in none]
    bars += [at_least("compactions", said["compact"]["rounds"], 3), at_least("merges", said["merge"]["merges"], 3)]
    return {"name": "stress", "figures": {"minutes": minutes, **figures}, "bars": bars}


class _Role:
    """One of the three, in a process of its own."""

    def __init__(self, name: str, lake: str, folder: str, minutes: float) -> None:
        self.name = name
        command = [sys.executable, "-m", "tests.bench.stress", "--role", name, "--lake", lake]
        command += ["--folder", folder, "--minutes", str(minutes)]
        environment = {**os.environ, "FOREBAY_LOG": "error"}
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)

    def wait_for(self, word: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == word, f"{self.name} did not begin"

    def result(self) -> dict[str, int]:
        said, _ = self.process.communicate()
        assert self.process.returncode == 0, f"{self.name} ended with {self.process.returncode}"
        told: dict[str, int] = json.loads(said.strip().splitlines()[-1])
        return told


def _counted(path: str, batches: int, merges: int) -> dict[str, int]:
    """How many rows are not as they must be after so many batches and merges."""
    from forebay.spark.session import session
    from tests.upkeep.compaction.on_spark.ingesting import MERGES, OLD_ROWS, ROWS

    spark = session("bench-stress", extra=SMALL_MACHINE)
    try:
        found = Counter((row.id, row.v, row.part) for row in spark.read.format("delta").load(path).collect())
    finally:
        spark.stop()
    times = Counter(number % MERGES for number in range(merges))
    model = Counter(
        (n, n % 7 + (times[n % MERGES] if n < OLD_ROWS else 0), n % 2) for n in range(OLD_ROWS + batches * ROWS)
    )
    ids, there = Counter(n for n, _, _ in model), Counter(n for n, _, _ in found.elements())
    return {
        "rows lost": (ids - there).total(),
        "rows twice": (there - ids).total(),
        "rows with a wrong value": (found - model).total(),
    }


# --- what each does ---


def append(lake: str, _: Path, numbers: Iterator[int]) -> dict[str, int]:
    from forebay.spark.session import session
    from tests.upkeep.compaction.on_spark.ingesting import OLD_ROWS, ingest

    spark = session("stress-append", extra=SMALL_MACHINE)
    old = spark.range(0, OLD_ROWS, 1, 4).selectExpr("id", "id % 7 v", "id % 2 part")
    old.write.format("delta").partitionBy("part").save(f"{lake}/alpha")
    print("begun", flush=True)
    done = _Counted(numbers)
    ingest(spark, f"{lake}/alpha", done)
    return {"batches": done.count}


def merge(lake: str, _: Path, numbers: Iterator[int]) -> dict[str, int]:
    from forebay.spark.session import session
    from tests.upkeep.compaction.on_spark import ingesting

    done, conflicts = _Counted(numbers), list[str]()
    ingesting.merge(session("stress-merge", extra=SMALL_MACHINE), f"{lake}/alpha", done, conflicts)
    return {"merges": done.count, "conflicts": len(conflicts)}


def compact(lake: str, folder: Path, numbers: Iterator[int]) -> dict[str, int]:
    import forebay.upkeep.compaction.job as job
    from forebay.events import Event
    from forebay.settings import CompactSettings
    from forebay.spark.session import session
    from forebay.upkeep.compaction.events import CompactionEnded

    session("stress-compact", extra=SMALL_MACHINE)
    rounds, failed, ended, service = 0, 0, list[CompactionEnded](), folder / "service.toml"

    def note(event: Event) -> None:
        if isinstance(event, CompactionEnded):
            ended.append(event)

    for number in numbers:
        service.write_text(f'name = "stress"\n[[tables]]\nname = "alpha"\n{WAYS[number % len(WAYS)]}')
        ran = job.compact(CompactSettings(lake=lake, service=str(service), now=True), emit=note)
        rounds += bool(ran.tasks)
        failed += sum(left.reason != "conflict" for left in ran.left)
    return {"rounds": rounds, "failed": failed, "conflicts": sum(event.conflicts for event in ended)}


class _Counted:
    """Numbers, and how many were asked for."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers, self.count = numbers, 0

    def __iter__(self) -> Iterator[int]:
        for number in self._numbers:
            self.count += 1
            yield number


def _numbers_until(end: float) -> Iterator[int]:
    return itertools.takewhile(lambda _: time.monotonic() < end, itertools.count())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=5)
    options.add_argument("--role", choices=ROLES, help=argparse.SUPPRESS)
    options.add_argument("--lake", help=argparse.SUPPRESS)
    options.add_argument("--folder", help=argparse.SUPPRESS)
    told = options.parse_args()
    if told.role:
        end = time.monotonic() + told.minutes * 60
        print(json.dumps(globals()[told.role](told.lake, Path(told.folder), _numbers_until(end))))
    else:
        print(json.dumps(run(minutes=told.minutes)))


if __name__ == "__main__":
    main()
