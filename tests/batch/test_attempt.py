"""Declared SQL, tried: whatever Spark's functions are given, no row ends the query."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from forebay.batch.attempt import attempt
from forebay.batch.expectations import check_expressions
from forebay.declaration.service import parse_service
from forebay.errors import Misdeclared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FUNCTIONS = int(os.environ.get("FOREBAY_TEST_FUNCTIONS", "12"))
"""So many of Spark's some 500 are tried in the suite; by hand all of them."""

TYPES = {
    "n": "long",
    "i": "int",
    "x": "double",
    "d": "decimal(38,18)",
    "t": "string",
    "b": "boolean",
    "y": "date",
    "at": "timestamp",
}
NASTY = """values
    (0L, 0, 0D, 0.000000000000000000BD, '', true, date'0001-01-01', timestamp'0001-01-01 00:00:00'),
    (9223372036854775807L, 2147483647, double('infinity'), 99999999999999999999.999999999999999999BD, '[', false,
     date'9999-12-31', timestamp'9999-12-31 23:59:59.999999'),
    (-9223372036854775808L, -2147483648, double('nan'), -0.000000000000000001BD, '%s \\\\ é {', null, date'1970-01-01', null),
    (null, null, null, null, null, null, null, null)"""
ARGUMENTS = (
    "",
    *TYPES,
    "n, i",
    "t, t",
    "t, i",
    "t, i, i",
    "x, n",
    "d, d",
    "y, i",
    "at, t",
    "array(n), i",
    "map(t, n), t",
    "t, n, t",
)


def test_no_function_ends_the_query_whatever_it_is_given(spark: SparkSession) -> None:
    every = [row[0] for row in spark.sql("show system functions").collect() if row[0].isidentifier()]
    chosen = random.Random(20261122).sample(every, min(FUNCTIONS, len(every)))
    asked = {f"{name}({arguments})" for name in chosen for arguments in ARGUMENTS} - {"raise_error(t)"}
    asked |= {"raise_error(t)", "n / i", "n + n", "cast(t as int)", "n % i", "element_at(array(n), i)", "abs(i)", "-n"}
    good = [sql for sql in sorted(asked) if understood(spark, sql)]
    assert len(good) > 8
    columns = [f"cast({name} as {kind.replace('long', 'bigint')}) {name}" for name, kind in TYPES.items()]
    rows = spark.sql(NASTY).toDF(*TYPES).selectExpr(*columns).repartition(1)
    tried = [attempt(sql, "string", F.col("t").isNotNull() | F.col("t").isNull()) for sql in good]
    rows = rows.select(*(made["value"].alias(f"c{at}") for at, made in enumerate(tried)))
    assert len(rows.collect()) == 4


def understood(spark: SparkSession, sql: str) -> bool:
    columns = ", ".join(f'{{ name = "{name}", type = "{kind}" }}' for name, kind in TYPES.items())
    declared = f'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{columns}, {{ name = "it", expression = "{sql}" }}]'
    try:
        check_expressions(spark, parse_service({"service.toml": declared}))
    except Misdeclared:
        return False
    return True
