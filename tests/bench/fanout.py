"""How much longer one batch takes to reach thirty tables than one partitioned table, and than thirty plain appends; and how
long it takes to make 1,200 tables.

In: 200,000 parsed rows of telemetry, cached, on a lake in a folder (or, with `--s3`, on the twin's S3). Each round writes
the same rows once in each way, in turn, so that a busy machine is busy for all; the first round only warms up. Every table
is counted at the end. Out: `run()`'s figures in seconds, and the bar.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

__all__ = ["run"]

MANY = 1200

COLUMNS = [
    "concat('game_', lpad(game, 2, '0')) game",
    "concat('event_', id % 17) event",
    "timestamp_micros(1767225600000000 + id * 431000) event_time",
    "id",
    "uuid() event_id",
    "named_struct('id', concat('p', id % 5000), 'level', id % 60, 'country', concat('c', id % 40)) player",
    "transform(sequence(1, 1 + id % 3), i -> named_struct('sku', concat('sku-', i), 'amount', i * 100)) items",
    "id * 0.01D price",
    "id % 11 = 0 first_time",
    "concat('session-', id div 50) session",
    "id div 1000 line",
    "uuid() file_id",
]


def run(
    *, rows: int = 200_000, tables: int = 30, rounds: int = 3, naive_rounds: int = 1, s3: bool = False
) -> dict[str, Any]:
    """Figures and bars. Games differ in size: the largest has about a fifth of the rows."""
    with _lake(s3) as lake:
        from forebay.spark.session import session

        spark = session("bench-fanout")
        try:
            cached = _rows(spark, rows, tables)
            contest = _Contest(spark, cached, tables, lake)
            seconds = _alternate({"fan_out": contest.fan_out, "partitioned": contest.partitioned}, rounds)
            naive = [_timed(contest.thirty_appends) for _ in range(naive_rounds)]
            contest.check(rows, fanned_out=rounds + 1, appended=naive_rounds)
            many = _timed(partial(_make_many_tables, spark, f"{lake}/many"))
        finally:
            spark.stop()
    ours, one_table = (statistics.median(seconds[name]) for name in ("fan_out", "partitioned"))
    figures: dict[str, Any] = {
        "rows": rows,
        "tables": tables,
        "on": "s3" if s3 else "file",
        "fan_out_s": round(ours, 3),
        "one_partitioned_table_s": round(one_table, 3),
        "fan_out_rounds_s": seconds["fan_out"],
        "one_partitioned_table_rounds_s": seconds["partitioned"],
        "new_tables": MANY,
        "new_tables_s": many,
    }
    if naive:
        figures |= {"plain_appends_s": naive[-1], "plain_appends_to_fan_out": round(naive[-1] / ours, 2)}
    ratio = ours / one_table
    bars = [{"name": "fan-out to one partitioned table", "value": round(ratio, 2), "limit": 3, "holds": ratio <= 3}]
    return {"name": "fanout", "figures": figures, "bars": bars}


def _rows(spark: Any, rows: int, tables: int) -> Any:
    """As the parser leaves them: the games mixed, kept in memory. One partition a core, because the partitioned table gets a
    file for each partition and game: more of them would only slow it down."""
    cores = spark.sparkContext.defaultParallelism
    of_game = f"cast(pow(rand(7), 3) * {tables} as int) game"
    cached = spark.range(0, rows, 1, cores).selectExpr("id", of_game).selectExpr(*COLUMNS).persist()
    assert cached.count() == rows
    assert cached.select("game").distinct().count() == tables
    return cached


def _make_many_tables(spark: Any, lake: str) -> None:
    """Two rows for each of them, in one batch."""
    from forebay.table.commit import Txn
    from forebay.table.destination import Appended, Destination
    from forebay.table.kernel import TableLogs
    from tests.table.appending import append

    # In a folder, Delta's usual log store starts a process for each chmod; this one does not, and one driver is alone here.
    spark.conf.set("spark.delta.logStore.file.impl", "io.delta.storage.LocalLogStore")
    logs = TableLogs(spark)
    names = [f"game_{n}" for n in range(MANY)]
    rows = spark.range(2 * MANY).selectExpr(f"concat('game_', id % {MANY}) _table", "id")
    tables = [Destination(name, f"{lake}/{name}") for name in names]
    outcomes = append(spark, rows, tables, txn=Txn("bench", 1), logs=logs)
    logs.close()
    assert {name: o.rows for name, o in outcomes.items() if isinstance(o, Appended)} == dict.fromkeys(names, 2)


class _Contest:
    """The same rows, written in three ways."""

    def __init__(self, spark: Any, rows: Any, tables: int, lake: str) -> None:
        from forebay.table.kernel import TableLogs

        self.spark, self.rows, self.lake = spark, rows, lake
        self.games = [f"game_{i:02}" for i in range(tables)]
        self.logs = TableLogs(spark)
        self.batch = 0

    def fan_out(self) -> None:
        from forebay.table.commit import Txn
        from forebay.table.destination import Appended, Destination
        from tests.table.appending import append

        self.batch += 1
        rows = self.rows.withColumnRenamed("game", "_table")
        tables = [Destination(game, f"{self.lake}/fan_out/{game}") for game in self.games]
        outcomes = append(self.spark, rows, tables, txn=Txn("bench", self.batch), logs=self.logs)
        assert all(isinstance(outcome, Appended) for outcome in outcomes.values()), outcomes
        assert len(outcomes) == len(self.games)

    def partitioned(self) -> None:
        path = f"{self.lake}/partitioned"
        self.rows.write.format("delta").mode("append").partitionBy("game").save(path)

    def thirty_appends(self) -> None:
        for game in self.games:
            path = f"{self.lake}/plain/{game}"
            self.rows.where(self.rows.game == game).drop("game").write.format("delta").mode("append").save(path)

    def check(self, rows: int, *, fanned_out: int, appended: int) -> None:
        """Nobody was quick by leaving rows out."""
        self.logs.close()
        read = self.spark.read.format("delta")
        assert sum(read.load(f"{self.lake}/fan_out/{game}").count() for game in self.games) == rows * fanned_out
        assert read.load(f"{self.lake}/partitioned").count() == rows * fanned_out
        if appended:
            assert sum(read.load(f"{self.lake}/plain/{game}").count() for game in self.games) == rows * appended


def _alternate(ways: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    for way in ways.values():
        way()
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            seconds[name].append(_timed(way))
    return seconds


def _timed(way: Callable[[], None]) -> float:
    began = time.perf_counter()
    way()
    return round(time.perf_counter() - began, 3)


@contextmanager
def _lake(s3: bool) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder:
        if not s3:
            yield f"file://{folder}/lake"
            return
        from forebay_local.twin.twin import running

        with running(Path(folder)) as twin:
            os.environ.update(twin.env)
            yield f"s3://{twin.lake_bucket}/bench"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    for name, default in (("rows", 200_000), ("tables", 30), ("rounds", 3), ("naive-rounds", 1)):
        options.add_argument(f"--{name}", type=int, default=default)
    options.add_argument("--s3", action="store_true")
    print(json.dumps(run(**vars(options.parse_args()))))


if __name__ == "__main__":
    main()
