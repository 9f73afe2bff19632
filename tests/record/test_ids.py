"""The ids that tasks make are those that Spark makes: a lake has ids of both."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from forebay.record.ids import ids_of
from tests.batch.by_spark.dedupe import id_of, texts_of

ODD = "".join(map(chr, [*range(0x20), 0x22, 0x5C, 0x2F, 0x7F, 0x80, 0x9F, 0x2028, 0x2029, 0xFEFF, 0xFFFF, 0x1F600]))
VALUES = {
    "text": pa.array(["", "a", "null", ODD, "\\u001f \\\\u00ab \\", "ü\u0000é", None, "0"]),
    "long": pa.array([0, -1, 2**63 - 1, -(2**63), 10, 7, None, 1], pa.int64()),
    "int": pa.array([0, -1, 2**31 - 1, -(2**31), 10, 7, None, 1], pa.int32()),
    "yes": pa.array([True, False, None, True, False, None, None, True]),
    "day": pa.array(
        [date(1, 1, 1), date(999, 12, 31), date(1969, 12, 31), date(9999, 12, 31), *[None] * 4], pa.date32()
    ),
    "at": pa.array(
        [
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(1582, 10, 4, 1, 2, 3, 4, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 999_990, tzinfo=UTC),
            datetime(2026, 11, 25, 10, 0, 0, tzinfo=UTC),
            datetime(2026, 11, 25, 10, 0, 0, 500_000, tzinfo=UTC),
            datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            None,
            datetime(2000, 2, 29, tzinfo=UTC),
        ],
        pa.timestamp("us", tz="UTC"),
    ),
    "small": pa.array(
        [Decimal(n).scaleb(-10) for n in (0, 1, -1, 10**12, 10**19, 7)] + [None, None], pa.decimal128(20, 10)
    ),
    "bytes": pa.array([b"", "é\u0000".encode(), ODD.encode(), b"null", b"{}", b"1.0", None, b"x"], pa.binary()),
    "whole": pa.array([Decimal(n) for n in (0, 1, -1, 10**30, -(10**37), 7)] + [None, None], pa.decimal128(38, 0)),
}


@pytest.mark.parametrize("by", [*((name,) for name in VALUES), tuple(VALUES)], ids="-".join)
def test_ids_of_tasks_are_those_of_spark(spark: SparkSession, by: tuple[str, ...]) -> None:
    rows = spark.createDataFrame(pa.table(VALUES))
    name = 'a "table"'
    parts = texts_of([F.col(one) for one in by])
    made = rows.select(F.when(F.coalesce(*parts).isNotNull(), id_of(F.lit(name), parts)).alias("id")).collect()
    assert ids_of(name, [VALUES[one] for one in by]).to_pylist() == [row["id"] and bytes(row["id"]) for row in made]
