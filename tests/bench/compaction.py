"""What compaction is worth, and what it costs: queries before and after, our run against a bare OPTIMIZE, and the planning of
a thousand tables.

In: a table of many small files in a folder, whose rows come in no order, four times; and a lake of a thousand tables
with logs of a thousand files (a checkpoint and fifty commits each). Two copies are compacted by `forebay compact`, with
all that belongs to it (plan, lease, counting, health), two by Delta's OPTIMIZE alone; a small table before them warms
both up. By default the table is a fifth of the real one, which takes a laptop some minutes: `--files 5000 --rows
2000000` is that. Out: `run()`'s figures in seconds, and the bars.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.bars import at_least, at_most

COMMITS = 50


def run(*, files: int = 1000, rows: int = 400_000, tables: int = 1000, table_files: int = 1000) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="forebay-bench-") as folder:
        planned = _planning(Path(folder, "many"), tables, table_files)
        contest = _contest(Path(folder, "few"), files, rows)
    figures = {"files": files, "rows": rows, "tables": tables, "table_files": table_files, **planned, **contest}
    scan = contest["scan_before_s"] / contest["scan_after_s"]
    point = contest["point_before_s"] / contest["point_after_s"]
    speed = contest["bare_optimize_s"] / contest["compact_s"]
    bars = [
        at_least("full scan, before to after", scan, 5, digits=1),
        at_least("point query, before to after", point, 5, digits=1),
        at_least("throughput to bare OPTIMIZE", speed, 1),
        at_most("planning, seconds", planned["planning_s"], 8),
    ]
    return {"name": "compaction", "figures": figures, "bars": bars}


# --- planning ---


def _planning(lake: Path, tables: int, files: int) -> dict[str, Any]:
    from forebay.declaration.loading import builtin_service
    from forebay.settings import CompactSettings
    from forebay.upkeep.compaction.job import plan_lake

    _many_tables(lake, tables, files)
    began = time.perf_counter()
    planned = plan_lake(CompactSettings(lake=str(lake)), builtin_service(), now=datetime.now(UTC))
    seconds = round(time.perf_counter() - began, 2)
    assert planned.totals()["tables"] == tables, planned.skipped[:3]
    assert planned.totals()["files_rewritten"] == tables * files
    return {"planning_s": seconds, "planned_tasks": len(planned.tasks)}


def _many_tables(lake: Path, tables: int, files: int) -> None:
    """One log, as Delta writes it, under many names: links, not copies, so that it is quick."""
    from deltalake import DeltaTable

    first = lake / "t0000" / "_delta_log"
    first.mkdir(parents=True)
    adds = [_add(number) for number in range(files)]
    start = [*_declared(), *adds[: files - COMMITS]]
    (first / f"{0:020}.json").write_text("\n".join(map(json.dumps, start)))
    DeltaTable(first.parent).create_checkpoint()
    for version, add in enumerate(adds[files - COMMITS :], 1):
        (first / f"{version:020}.json").write_text(json.dumps(add))
    for number in range(1, tables):
        other = lake / f"t{number:04}" / "_delta_log"
        other.mkdir(parents=True)
        for file in first.iterdir():
            os.link(file, other / file.name)


def _declared() -> list[dict[str, Any]]:
    fields = [("event_id", "string"), ("event_time", "timestamp"), ("price", "double"), ("day", "date")]
    schema = {"type": "struct", "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields]}
    metadata = {"id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": json.dumps(schema)}
    metadata |= {"partitionColumns": ["day"], "configuration": {}, "createdTime": 1}
    return [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]


def _add(number: int) -> dict[str, Any]:
    day = f"2026-05-{number % 20 + 1:02}"
    low, high = (
        {"event_id": c * 32, "event_time": f"{day}T{h}:00:00.000Z", "price": p}
        for c, h, p in (("0", "00", 0.5), ("f", "23", 99.5))
    )
    stats = {"numRecords": 500, "minValues": low, "maxValues": high, "nullCount": dict.fromkeys(low, 0)}
    action: dict[str, Any] = {"path": f"day={day}/part-{number:05}-{'0' * 36}.zstd.parquet", "size": 40_000 + number}
    action |= {"partitionValues": {"day": day}, "modificationTime": 1_780_000_000_000, "dataChange": True}
    return {"add": {**action, "stats": json.dumps(stats)}}


# --- the contest ---


def _contest(lake: Path, files: int, rows: int) -> dict[str, Any]:
    from forebay.spark.session import session

    spark = session("bench-compaction")
    try:
        for name, count in (("warm", 40), ("ours", files)):
            _small_files(spark, str(lake / name), count, rows * count // files)
        for name, copies in (("warm", ("warm_bare",)), ("ours", ("bare", "ours_again", "bare_again"))):
            for copy in copies:
                shutil.copytree(lake / name, lake / copy)
        _compact(lake, "warm")
        _optimize(spark, lake / "warm_bare")
        before = _queries(spark, lake / "ours")
        # Each of them once first and once last, since a JVM is quicker the second time.
        compact_s = _timed(lambda: _compact(lake, "ours"))
        optimize_s = _timed(lambda: _optimize(spark, lake / "bare"))
        optimize_s += _timed(lambda: _optimize(spark, lake / "bare_again"))
        compact_s += _timed(lambda: _compact(lake, "ours_again"))
        after = _queries(spark, lake / "ours")
        assert before["answers"] == after["answers"], "compaction changed a row"
        counts = {name: _count(lake / name) for name in ("ours", "ours_again", "bare", "bare_again")}
        assert len(set(counts.values())) == 1, counts
        assert counts["ours"] < files, counts
    finally:
        spark.stop()
    queries = {
        f"{name}_{when}_s": found[name] for when, found in (("before", before), ("after", after)) for name in QUERIES
    }
    return {
        **queries,
        "compact_s": round(compact_s, 3),
        "bare_optimize_s": round(optimize_s, 3),
        "files_after": counts["ours"],
    }


def _small_files(spark: Any, path: str, files: int, rows: int) -> None:
    # No fractions: their sum depends on the order of the rows, and would look like a changed row.
    columns = [
        "xxhash64(id) key",
        "id % 1000 player",
        "concat('event_', id % 17) event",
        "id * 7 price",
        "uuid() note",
    ]
    made = spark.range(0, rows, 1, files).selectExpr(*columns)
    made.write.format("delta").save(path)
    assert _count(Path(path)) == files


def _count(table: Path) -> int:
    from forebay.lake.log.snapshot import read_snapshot
    from forebay.lake.objects import open_objects

    return len(read_snapshot(open_objects(str(table))).files)


def _compact(lake: Path, table: str) -> None:
    from forebay.settings import CompactSettings
    from forebay.upkeep.compaction.job import compact

    ran = compact(CompactSettings(lake=str(lake), tables=table, now=True), emit=lambda event: None)
    assert ran.tasks, ran.plan.skipped
    assert ran.status == 0, ran.left


def _optimize(spark: Any, table: Path) -> None:
    from delta.tables import DeltaTable

    # The same size of files as ours; otherwise the settings that it comes with.
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(128 << 20))
    DeltaTable.forPath(spark, str(table)).optimize().executeCompaction()


QUERIES = {
    # Every column of every row, and as little besides as can be: a sum that no order of rows changes.
    "scan": "SELECT count(*), sum(price), bit_xor(xxhash64(key, player, event, price, note)) FROM {}",
    "point": "SELECT player, event, price FROM {} WHERE key = xxhash64(4711L)",
}


def _queries(spark: Any, table: Path) -> dict[str, Any]:
    """Median of three, after one to warm up."""
    found: dict[str, Any] = {"answers": []}
    for name, sql in QUERIES.items():
        ask = lambda sql=sql: spark.sql(sql.format(f"delta.`{table}`")).collect()  # noqa: E731
        found["answers"].append(ask())
        found[name] = statistics.median(_timed(ask) for _ in range(3))
    return found


def _timed(deed: Callable[[], object]) -> float:
    began = time.perf_counter()
    deed()
    return round(time.perf_counter() - began, 3)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    for name, default in (("files", 1000), ("rows", 400_000), ("tables", 1000), ("table-files", 1000)):
        options.add_argument(f"--{name}", type=int, default=default)
    print(json.dumps(run(**vars(options.parse_args()))))


if __name__ == "__main__":
    main()
