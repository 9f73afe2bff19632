"""The hash of a row, by which a merge tells a row that was only copied from one that is another."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from forebay.merge.winners import hash_of

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SCHEMA = (
    "n int, items array<int>, lists array<array<string>>, at struct<a:string,b:string>, "
    "pairs array<struct<a:int,b:int>>, seen map<string,timestamp>, deep map<string,array<int>>, price decimal(9,2)"
)
ROWS = (
    *({"items": one} for one in (None, [], [1], [None], [1, None], [None, 1], [None, None], [1, 2], [2, 1])),
    *({"lists": one} for one in ([], [[]], [None], [[], []], [["a", "b"]], [["a"], ["b"]], [["a, b"]], [["a", None]])),
    *({"at": one} for one in (("x", None), (None, "x"), (None, None), ("x", "x"), ("at", "x"))),
    *({"pairs": one} for one in ([(1, None)], [(None, 1)], [None], [(None, None)], [(1, 1)], [(1, None), None])),
    *({"seen": one} for one in ({}, {"k": None}, {"k": NOW}, {"k": NOW.replace(microsecond=1)}, {"j": NOW})),
    *({"deep": one} for one in ({}, {"k": None}, {"k": []}, {"k": [None]}, {"k": [1]}, {"j": [1]})),
    *({"price": Decimal(one)} for one in ("1.00", "2.00")),
    {"n": 1},
)


def hashed(rows: DataFrame, prefix: str = "") -> Expression:
    return hash_of(rows.schema, lambda name: F.col(f"{prefix}`{name}`"))


def test_rows_that_differ_have_different_hashes(spark: SparkSession) -> None:
    rows = spark.createDataFrame([{**row, "n": row.get("n")} for row in ROWS], SCHEMA).coalesce(1)
    assert len({row[0] for row in rows.select(hashed(rows)).collect()}) == len(ROWS)


def test_the_order_of_a_map_and_columns_without_a_value_are_no_difference(spark: SparkSession) -> None:
    one = spark.sql("select map('a', array(1, null), 'b', null) as m, named_struct('x', 1) as s")
    other = spark.sql(
        "select named_struct('m', map('b', null, 'a', array(1, null)), 'new', null, 's', named_struct('new', null, 'x', 1)) t"
    )
    (found,) = one.join(other).select(hashed(one) == hashed(other.select("t.*"), "t.")).collect()
    assert found[0]
