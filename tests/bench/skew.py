"""How evenly the tasks share a batch in which one table has a hundred times the rows of each other one.

In: parsed rows with their records' texts, cached, on a lake in a folder. The same rows are written in three ways, in turn: as
it is (what is larger than a byte target is split), without that, and without it but with a declared salt. The target is made
as much smaller than on a cluster as the batch is. Every table is counted at the end. Out: `run()`'s figures, the longest task
of the job that writes the files as a multiple of the median one, and the bar.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from typing import Any

from tests.bench.bars import at_most

__all__ = ["run"]

HOT = "hot"
DOCUMENT = (
    "to_json(named_struct('event', concat('event_', id % 17), 'level', id % 60, 'price', id * 0.01D, "
    "'player', named_struct('id', uuid(), 'country', concat('c', id % 40)), 'session', uuid(), "
    "'items', transform(sequence(1, 1 + id % 3), i -> named_struct('sku', concat('sku-', i), 'amount', i * 100))))"
)


def run(
    *, rows: int = 300_000, tables: int = 60, rounds: int = 2, target_bytes: int = 2 << 20, salt: int = 16
) -> dict[str, Any]:
    """`rows` are all of them; `tables` are those beside the hot one."""
    from forebay.spark.session import session

    extra = {
        "spark.sql.shuffle.partitions": "32",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(target_bytes),
    }
    with tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder:
        spark = session("bench-skew", extra=extra)
        try:
            contest = _Contest(spark, f"file://{folder}", rows, tables, salt)
            ways = {"as_it_is": contest.as_it_is, "without": contest.without, "with_salt": contest.with_salt}
            for way in ways.values():
                way()
            times: dict[str, list[list[int]]] = {name: [] for name in ways}
            for _ in range(rounds):
                for name, way in ways.items():
                    times[name].append(way())
            contest.check(batches=(rounds + 1) * len(ways))
        finally:
            spark.stop()
    ratios = {name: [_ratio(tasks) for tasks in found] for name, found in times.items()}
    figures: dict[str, Any] = {"rows": rows, "hot_to_other": 100, "tables": tables + 1, "target_bytes": target_bytes}
    for name, found in times.items():
        figures |= {
            f"{name}_slowest_to_median": round(statistics.median(ratios[name]), 2),
            f"{name}_rounds": [round(ratio, 2) for ratio in ratios[name]],
            f"{name}_slowest_s": round(statistics.median(max(tasks) for tasks in found) / 1000, 3),
            f"{name}_tasks": int(statistics.median(len(tasks) for tasks in found)),
        }
    ratio = figures["as_it_is_slowest_to_median"]
    bars = [at_most("slowest task to the median one", ratio, 3)]
    return {"name": "skew", "figures": figures, "bars": bars}


def _ratio(tasks: list[int]) -> float:
    return max(tasks) / statistics.median(tasks)


class _Contest:
    """The same rows, written in three ways; each says how many milliseconds its tasks took."""

    def __init__(self, spark: Any, lake: str, rows: int, tables: int, salt: int) -> None:
        from forebay.table.kernel import TableLogs

        self.spark, self.lake, self.salt = spark, lake, salt
        self.names = [HOT, *(f"other_{n:02}" for n in range(tables))]
        self.logs = TableLogs(spark)
        self.batch = 0
        share = 100 + tables
        of = f"if(id % {share} < 100, '{HOT}', concat('other_', lpad(id % {share} - 100, 2, '0')))"
        source = spark.range(0, rows - rows % share, 1, 16)
        self.rows = source.selectExpr(
            f"{of} _table", "id", f"{DOCUMENT} _document", "cast(null as string) _misfits"
        ).persist()
        self.count = self.rows.count()
        hot = self.rows.where(self.rows["_table"] == HOT).count()
        assert hot * share == self.count * 100, "a hundred to one"

    def as_it_is(self) -> list[int]:
        return self._written("as_it_is")

    def without(self) -> list[int]:
        return self._unsplit("without", 1)

    def with_salt(self) -> list[int]:
        return self._unsplit("with_salt", self.salt)

    def _unsplit(self, way: str, salt: int) -> list[int]:
        split = "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled"
        self.spark.conf.set(split, "false")
        try:
            return self._written(way, salt)
        finally:
            self.spark.conf.unset(split)

    def _written(self, way: str, salt: int = 1) -> list[int]:
        from forebay.record.growth import Rules
        from forebay.table.commit import Txn
        from forebay.table.destination import Appended, Destination
        from tests.table.appending import append

        self.batch += 1
        rules = Rules()
        places = [
            Destination(name, f"{self.lake}/{way}/{name}", rules=rules, salt=salt if name == HOT else 1)
            for name in self.names
        ]
        group = f"{way}-{self.batch}"
        self.spark.sparkContext.setJobGroup(group, group)
        outcomes = append(self.spark, self.rows, places, txn=Txn("bench", self.batch), logs=self.logs)
        assert all(isinstance(outcome, Appended) for outcome in outcomes.values()), outcomes
        return self._task_times(group)

    def _task_times(self, group: str) -> list[int]:
        """Of the last stage of the group's jobs, which writes the files; from Spark's own account of it."""
        spark_context = self.spark.sparkContext
        scala = spark_context._jsc.sc()
        scala.listenerBus().waitUntilEmpty()
        tracker = spark_context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stage = max(stage for job in jobs if job is not None for stage in job.stageIds)
        tasks = scala.statusStore().taskList(stage, 0, 10_000)
        return [int(tasks.apply(at).taskMetrics().get().executorRunTime()) for at in range(tasks.size())]

    def check(self, batches: int) -> None:
        """Nobody was even by leaving rows out."""
        self.logs.close()
        read = self.spark.read.format("delta")
        ways = ("as_it_is", "without", "with_salt")
        found = sum(read.load(f"{self.lake}/{way}/{name}").count() for way in ways for name in self.names)
        assert found == self.count * batches


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    defaults = (("rows", 300_000), ("tables", 60), ("rounds", 2), ("target-bytes", 2 << 20), ("salt", 16))
    for name, default in defaults:
        options.add_argument(f"--{name}", type=int, default=default)
    print(json.dumps(run(**vars(options.parse_args()))))


if __name__ == "__main__":
    main()
