"""What a look at many states costs: where each has changed, where none has, and where a tenth of them has.

In: a lake in a folder with so many tables of changes, each with a few rows, and a merger. Out: `run()`'s figures: seconds of
runs in which all changed, one at a time and several at once; of the first run of a process that finds nothing to do, and of a
later one; and of a run in which a tenth changed. Bars: ratios of these.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from typing import Any

from tests.bench.bars import at_most

AT_ONCE = 8
SERVICE = """
name = "bench"
[[tables]]
name = "{game}_log"
mode = "merge"
columns = [{ name = "id" }, { name = "at", type = "long" }]
merge = { into = "{game}_now", keys = ["id"], sequence_by = ["at"] }
"""


def run(*, states: int = 100) -> dict[str, Any]:
    from forebay.spark.session import session

    with tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder:
        spark = session("bench-many-states", extra={"spark.sql.shuffle.partitions": "2"})
        try:
            lake = _Lake(spark, folder)
            lake.bring(states, 0)
            seconds = {"new": lake.merge(AT_ONCE)}  # this warms up, too
            for number, (name, at_once) in enumerate([("one_at_a_time", 1), ("at_once", AT_ONCE)], start=1):
                lake.bring(states, number)
                seconds[name] = lake.merge(at_once)
            seconds["nothing_after_a_start"] = lake.merge(AT_ONCE)
            merger = lake.merger(AT_ONCE)
            lake.run(merger)
            seconds["nothing_again"] = lake.run(merger)
            lake.bring(max(1, states // 10), 9)
            seconds["a_tenth"] = lake.run(merger)
            lake.check(states)
        finally:
            spark.stop()
    ratios = {
        "all states at once to one at a time": (seconds["at_once"] / seconds["one_at_a_time"], 0.8),
        "a start that finds nothing to do, to merges of all": (
            seconds["nothing_after_a_start"] / seconds["one_at_a_time"],
            0.1,
        ),
        "merges of a tenth, to merges of all": (seconds["a_tenth"] / seconds["at_once"], 0.3),
    }
    bars = [at_most(name, ratio, limit) for name, (ratio, limit) in ratios.items()]
    figures = {"states": states, **{f"{name}_s": round(found, 2) for name, found in seconds.items()}}
    return {"name": "many-states", "figures": figures, "bars": bars}


class _Lake:
    def __init__(self, spark: Any, folder: str) -> None:
        from forebay.declaration.loading import parse_service
        from forebay.table.kernel import TableLogs

        self.spark, self.folder, self.logs = spark, folder, TableLogs(spark)
        self.service = parse_service({"service.toml": SERVICE})

    def bring(self, tables: int, number: int) -> None:
        """Two rows into each of so many: a new key, and one that is changed."""
        from datetime import UTC, datetime

        import pyarrow as pa
        from deltalake import write_deltalake

        for at in range(tables):
            rows = {"id": ["same", f"new-{number}"], "at": [number, number], "_file_id": [f"f{number}"] * 2}
            rows |= {"_line": [1, 2], "_batch": [number] * 2, "_ingested_at": [datetime.now(UTC)] * 2}
            write_deltalake(f"{self.folder}/g{at}_log", pa.table(rows), mode="append")

    def merger(self, at_once: int) -> Any:
        from forebay.merge.job import Merger

        return Merger(self.spark, self.folder, logs=self.logs, emit=lambda event: None, at_once=at_once)

    def merge(self, at_once: int) -> float:
        """By a process that has just started."""
        return self.run(self.merger(at_once))

    def run(self, merger: Any) -> float:
        began = time.monotonic()
        done = merger.run(self.service, (), threading.Event())
        assert not done.left, done.left
        return time.monotonic() - began

    def check(self, states: int) -> None:
        from deltalake import DeltaTable

        for at in range(states):
            rows = DeltaTable(f"{self.folder}/g{at}_now").to_pyarrow_table().to_pylist()
            newest = {row["id"]: row["at"] for row in rows}["same"]
            assert newest == (9 if at < max(1, states // 10) else 2), (at, newest)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--states", type=int, default=100)
    print(json.dumps(run(**vars(options.parse_args()))))


if __name__ == "__main__":
    main()
