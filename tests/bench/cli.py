"""What a command costs before it answers: `--help`, and answers over a ledger of a million files, without a JVM.

Each is a process of its own, as an operator starts it. Out: `run()`'s figures, the median of several rounds, and the bars:
0.6 s for `--help`, 1.5 s for an answer. They are held against seconds of CPU: a command that finds its lake in a folder waits
for nothing else, and on a busy machine any other clock would say more.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from forebay.ledger.entry import COLUMNS
from tests.operate.ledger import entry, schema_of

DAYS = 30


def run(*, history: int = 1_000_000, rounds: int = 5) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder:
        _write_history(Path(folder), history)
        forebay, lake = [sys.executable, "-m", "forebay.cli.main"], ["--lake", folder]
        asked = {
            "python": [sys.executable, "-c", "pass"],
            "help": [*forebay, "--help"],
            "status": [*forebay, "status", *lake],
            "where": [*forebay, "where", f"s3://landing/in/{history // 2}.json", *lake],
            "files": [*forebay, "files", "list", *lake],
            "query": [*forebay, "query", "select outcome, count(*) from ledger group by outcome", *lake],
        }
        found = {name: [_seconds(command) for _ in range(rounds)] for name, command in asked.items()}
    cpu = {name: statistics.median(one for one, _ in times) for name, times in found.items()}
    wall = {name: statistics.median(one for _, one in times) for name, times in found.items()}
    figures = {"history": history, **{f"{name}_cpu_s": round(one, 3) for name, one in cpu.items()}}
    figures |= {f"{name}_wall_s": round(one, 3) for name, one in wall.items()}
    figures |= {f"{name}_times_python": round(one / cpu["python"], 1) for name, one in cpu.items() if name != "python"}
    answers = max(cpu[name] for name in ("status", "where", "files", "query"))
    return {**figures, "bars": {"help_within_0.6_s": cpu["help"] <= 0.6, "answers_within_1.5_s": answers <= 1.5}}


def _seconds(command: list[str]) -> tuple[float, float]:
    """Of CPU, and of the clock on the wall."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, time.perf_counter() - began


def _write_history(lake: Path, files: int) -> None:
    """Rows as the ledger has them, over a month; what no command looks at is the same in all."""
    usual, numbers, schema = entry("in/0.json", tables={"alpha": 5}), np.arange(files), schema_of(COLUMNS)
    days = np.datetime64(datetime.now(UTC).date()) - (numbers % DAYS)
    moments = pa.array(days.astype("datetime64[us]")).cast(pa.timestamp("us", "UTC"))
    keys = [f"in/{n}.json" for n in numbers]
    made: dict[str, Any] = {
        "day": pa.array(days),
        "key": pa.array(keys),
        "file_id": pa.array([f"{n:032x}" for n in numbers]),
        "key_hash": pa.array([entry(key)["key_hash"] for key in keys]),
        "batch": pa.array(numbers // 1000),
        **dict.fromkeys(("event_time", "claimed_at", "committed_at"), moments),
    }
    columns = [made[one.name] if one.name in made else pa.array([usual[one.name]] * files, one.type) for one in schema]
    write_deltalake(f"{lake}/_forebay/ledger", pa.Table.from_arrays(columns, schema=schema), partition_by=["day"])
    write_deltalake(lake / "alpha", pa.table({"_file_id": [f"{files // 2:032x}"] * 5}))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    for name, default in (("history", 1_000_000), ("rounds", 5)):
        options.add_argument(f"--{name}", type=int, default=default)
    print(json.dumps(run(**vars(options.parse_args()))))


if __name__ == "__main__":
    main()
