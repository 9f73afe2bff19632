"""Declared SQL, tried: whatever Spark's functions are given, no row ends the query."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from forebay.declaration.loading import parse_service
from forebay.declared_sql.attempt import attempt
from forebay.declared_sql.check import check_expressions
from forebay.errors import InvalidConfiguration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CALLS = int(os.environ.get("FOREBAY_CALLS", "50"))
"""So many calls of Spark's functions are tried in the suite, of some 30,000 that the arguments below make."""

TYPES = {
    "n": "long",
    "i": "int",
    "x": "double",
    "d": "decimal(38,18)",
    "t": "string",
    "b": "boolean",
    "y": "date",
    "at": "timestamp",
    "m": "map",
    "z": "binary",
}
NASTY = """values
    (0L, 0, 0D, 0.000000000000000000BD, '', true, date'0001-01-01', timestamp'0001-01-01 00:00:00',
     map(), x''),
    (9223372036854775807L, 2147483647, double('infinity'), 99999999999999999999.999999999999999999BD, '[', false,
     date'9999-12-31', timestamp'9999-12-31 23:59:59.999999',
     map('', null), x'00ff'),
    (-9223372036854775808L, -2147483648, double('nan'), -0.000000000000000001BD, '%s \\\\ é {', null, date'1970-01-01', null,
     map('{', '['), x'1f8b08'),
    (null, null, null, null, null, null, null, null, null, null)"""
ARGUMENTS = (
    "",
    *TYPES,
    *("n, i", "t, t", "t, i", "t, i, i", "t, n, t", "t, i, t", "t, t, t", "z, i", "z, i, z", "i, t", "i, i", "n, n, n"),
    *("x, n", "x, i", "d, d", "d, i", "y, i", "y, y", "at, t", "at, at", "t, at", "t, y", "m, t", "m, m"),
    *("i, i, i, i, i, i", "array(n), i", "array(t), t", "array(t), i, t", "array(n), n", "named_struct('t', t)"),
    *(
        "split(t, ''), t",
        "split(t, ''), split(t, '')",
        "split(t, ''), e -> t",
        "split(t, ''), e -> e",
        "m, (k, v) -> v",
    ),
    *("array(n), e -> e > n", "array(n), n, (a, e) -> a + e", "split(t, ''), t, (a, e) -> concat(a, a)"),
    *("'%1000000000d', n", "t, 2000000000"),
)
SEED = "20261122"
AT_ONCE = 100
SPARK_NAMES = {"long": "bigint", "map": "map<string,string>"}


@pytest.mark.deep
def test_no_function_ends_the_query_or_takes_the_memory_whatever_it_is_given(spark: SparkSession) -> None:
    every = [row[0] for row in spark.sql("show system functions").collect() if row[0].isidentifier()]
    calls = [f"{name}({arguments})" for name in every for arguments in ARGUMENTS]
    asked = set(random.Random(SEED).sample(calls, CALLS))
    asked |= {"raise_error(t)", "n / i", "n + n", "cast(t as int)", "n % i", "get(array(n), i)", "abs(i)", "-n"}
    asked |= {"lpad(t, 10, '0')", "replace(t, 'a', '_')", "sequence(1, 24)", "transform(split(t, ''), e -> upper(e))"}
    good = [sql for sql in sorted(asked) if not problems(spark, sql)]
    assert len(good) > 12
    columns = [f"cast({name} as {SPARK_NAMES.get(kind, kind)}) {name}" for name, kind in TYPES.items()]
    rows = spark.sql(NASTY).toDF(*TYPES).selectExpr(*columns).repartition(1)
    for first in range(0, len(good), AT_ONCE):
        tried = [
            attempt(sql, "string", F.col("t").isNotNull() | F.col("t").isNull())
            for sql in good[first : first + AT_ONCE]
        ]
        found = rows.select(*(F.length(made["value"]).alias(f"c{at}") for at, made in enumerate(tried))).collect()
        assert len(found) == 4
        assert max((length or 0 for row in found for length in row), default=0) < 100_000


@pytest.mark.parametrize(
    "sql",
    [
        "repeat(t, n)",
        "repeat(t, 2000000000)",
        "space(i)",
        "lpad(t, i, 'x')",
        "rpad(z, i, z)",
        "sequence(1, i)",
        "array_repeat(t, i)",
        "array_insert(split(t, ','), i, t)",
        "format_string('%2000000000d', n)",
        "format_number(x, 2000000000)",
        "replace(t, 'a', t)",
        "regexp_replace(t, '', t)",
        "transform(split(t, ''), e -> t)",
        "aggregate(split(t, ''), t, (a, e) -> concat(a, a))",
        "length(repeat(t, i)) > 3",
        "element_at(array(n), i)",
        "try_element_at(array(n), i)",
        "t rlike '^(a|b)*$'",
        "regexp_count(t, '(a|b)*c') > 1",
        "split(t, t)",
        "xpath_boolean(t, 'a')",
    ],
)
def test_what_a_record_could_kill_a_worker_with_is_refused_before_the_first_one(spark: SparkSession, sql: str) -> None:
    assert "is not safe for every record" in problems(spark, sql)


def problems(spark: SparkSession, sql: str) -> str:
    columns = ", ".join(f'{{ name = "{name}", type = "{kind}" }}' for name, kind in TYPES.items())
    declared = f'name = "s"\n[[tables]]\nname = "a"\ncolumns = [{columns}, {{ name = "it", expression = "{sql}" }}]'
    try:
        check_expressions(spark, parse_service({"service.toml": declared}))
    except InvalidConfiguration as refused:
        return str(refused)
    return ""
