"""Who reads the table as a stream sees every row once, whatever is done to its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from tests.upkeep.compaction.on_spark.lake import SmallLake


class Reader:
    """A stream with a checkpoint; each `sees` is a run of it, from where the last one ended."""

    def __init__(self, small: SmallLake, checkpoint: Path, *, feed: bool) -> None:
        self.small, self.checkpoint, self.feed = small, checkpoint, feed

    def sees(self) -> Counter[int]:
        seen: Counter[int] = Counter()

        def take(rows: DataFrame, _: int) -> None:
            seen.update(row.id for row in rows.select("id").collect())

        stream = self.small.spark.readStream.format("delta").option("readChangeFeed", str(self.feed).lower())
        rows = stream.load(self.small.path())
        writer = rows.writeStream.foreachBatch(take).option("checkpointLocation", str(self.checkpoint))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        return seen


def optimize(small: SmallLake) -> None:
    assert small.compact(service=small.declare('[[tables]]\nname = "alpha"')).tasks


def rewrite(small: SmallLake) -> None:
    declared = '[[tables]]\nname = "alpha"\ncompaction = { way = "rewrite", files = 1 }'
    assert small.compact(service=small.declare(declared)).tasks


def order(small: SmallLake) -> None:
    optimize(small)
    declared = '[[tables]]\nname = "alpha"\ncompaction = { order_by = ["v"] }'
    assert small.compact(service=small.declare(declared), round="second").tasks


def vacuum(small: SmallLake) -> None:
    """Everything that the newest version does not need goes: the readers have read it."""
    check = "spark.databricks.delta.retentionDurationCheck.enabled"
    small.spark.conf.set(check, "false")
    try:
        for kind in ("LITE", "FULL"):
            small.spark.sql(f"VACUUM delta.`{small.path()}` {kind} RETAIN 0 HOURS")
    finally:
        small.spark.conf.unset(check)
    assert len(list((small.folder / "alpha").glob("*.parquet"))) == len(small.files())


@pytest.mark.deep
def test_a_reader_sees_no_row_again(small: SmallLake, tmp_path: Path) -> None:
    """Neither a stream of the table nor one of its change feed."""
    sql = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    small.spark.sql(f"CREATE TABLE delta.`{small.path()}` (id BIGINT, v BIGINT) USING delta {sql}")
    bound = 0

    def append(count: int) -> Counter[int]:
        nonlocal bound
        small.append(small.spark.range(bound, bound + count, 1, 3).selectExpr("id", "id % 7 v"))
        bound += count
        return Counter(range(bound - count, bound))

    stream, feed = (Reader(small, tmp_path / name, feed=name == "feed") for name in ("stream", "feed"))
    late = Reader(small, tmp_path / "late", feed=False)  # a late feed would need files that the vacuum took
    appended = append(50)
    assert (stream.sees(), feed.sees()) == (appended, appended)
    deeds: list[Callable[[SmallLake], None]] = [optimize, rewrite, order]
    for deed in deeds:
        appended = append(3)
        deed(small)
        assert (stream.sees(), feed.sees()) == (appended, appended), f"after {deed.__name__}"
    vacuum(small)
    appended = append(3)
    assert (stream.sees(), feed.sees()) == (appended, appended), "after vacuum"
    assert late.sees() == Counter(range(bound))
