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


@pytest.mark.parametrize("feed", [False, True], ids=["stream", "change feed"])
def test_a_reader_sees_no_row_again(small: SmallLake, tmp_path: Path, feed: bool) -> None:
    property_ = {"delta.enableChangeDataFeed": str(feed).lower()}
    rows = small.spark.range(0, 50, 1, 5).selectExpr("id", "id % 7 v")
    sql = ", ".join(f"'{key}' = '{value}'" for key, value in property_.items())
    small.spark.sql(f"CREATE TABLE delta.`{small.path()}` (id BIGINT, v BIGINT) USING delta TBLPROPERTIES ({sql})")
    small.append(rows)
    reader, late = (Reader(small, tmp_path / name, feed=feed) for name in ("reader", "late"))
    assert reader.sees() == Counter(range(50))
    bound = 50
    deeds: list[Callable[[SmallLake], None]] = [optimize, rewrite, order]
    for deed in deeds:
        small.append(small.spark.range(bound, bound + 3, 1, 3).selectExpr("id", "id % 7 v"))
        deed(small)
        assert reader.sees() == Counter(range(bound, bound + 3)), f"after {deed.__name__}"
        bound += 3
    vacuum(small)
    small.append(small.spark.range(bound, bound + 3, 1, 3).selectExpr("id", "id % 7 v"))
    assert reader.sees() == Counter(range(bound, bound + 3)), "after vacuum"
    if not feed:  # a feed from the first version needs files that the vacuum took
        assert late.sees() == Counter(range(bound + 3))
