"""How much longer a batch of small files takes than the same records in large files.

In: a twin, with 2,000 files of some 10 KB, and the same number of records in ten files. One warm session takes both in, in
turns, each as one batch. Out: `run()`'s figures in seconds, and the bars. The twin answers a request for each file on the same
cores, so the bars are of the time and of the CPU without it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from forebay_local.twin.twin import running
from tests.bench.bars import at_most
from tests.bench.pipeline import SERVICE, Contest, put_files

LARGE = 10
MOST = 1.5


def run(*, files: int = 2000, records: int = 60_000, games: int = 11, rounds: int = 3) -> dict[str, Any]:
    """The first turn of each only warms up."""
    with tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder, running(Path(folder) / "twin") as twin:
        os.environ.update(twin.env)
        service = Path(folder) / "service.toml"
        service.write_text(SERVICE)
        numbers = {"small": files, "large": LARGE}
        landed = {kind: put_files(twin, many, records // many, games, kind) for kind, many in numbers.items()}
        from forebay.spark.session import session

        spark = session("bench-small-files")
        try:
            contest = Contest(spark, twin, str(service), 0)
            seconds: dict[str, list[float]] = {kind: [] for kind in numbers}
            processor: dict[str, list[float]] = {kind: [] for kind in numbers}
            for _ in range(rounds + 1):
                for kind, taken in seconds.items():
                    contest.records_per_file = records // numbers[kind]
                    taken.append(contest.ours(landed[kind]))
                    processor[kind].append(contest.processor_s)
        finally:
            spark.stop()
    measured = {kind: taken[1:] for kind, taken in seconds.items()}
    middle = {kind: statistics.median(taken) for kind, taken in measured.items()}
    figures: dict[str, Any] = {"files": files, "records": records, "games": games, "large_files": LARGE}
    figures |= {"bytes": sum(file.size or 0 for file in landed["small"])}
    figures |= {f"{kind}_rounds_s": taken for kind, taken in measured.items()}
    figures |= {"files_a_second": round(files / middle["small"], 1)}
    cpu = {kind: statistics.median(taken[1:]) for kind, taken in processor.items()}
    figures |= {f"{kind}_cpu_s": taken for kind, taken in cpu.items()}
    bars = [
        at_most("small files, times large ones", middle["small"] / middle["large"], MOST),
        at_most("times their CPU, without the twin's", cpu["small"] / cpu["large"], MOST),
    ]
    return {"name": "small_files", "figures": figures, "bars": bars}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    for name, default in (("files", 2000), ("records", 60_000), ("games", 11), ("rounds", 3)):
        options.add_argument(f"--{name}", type=int, default=default)
    print(json.dumps(run(**vars(options.parse_args()))))


if __name__ == "__main__":
    main()
