"""Evaluates declared SQL on a row: it returns a value, or reports that it could not.

In: a declared expression, its type, and the rows that it applies to. Out: a struct with one field, `value`. It is null where
Spark raised an error: a division by zero, an overflow, a bad cast, `raise_error`. It is also null for dates and times that
readers do not support, and on all other rows. No content of a record can make a batch fail here.

Spark runs in ANSI mode, where such an error ends the query. Without ANSI mode, integers would wrap around. So Spark's own
`TryEval` catches the error. It is inside a CASE WHEN, because Spark moves a common subexpression out of any other expression,
and would then evaluate it outside of the `TryEval`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression

FIRST, LAST = "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"
"""The range of times that Python, Arrow and most readers of Delta share."""


def attempt(sql: str, kind: str, meant: Expression) -> Expression:
    """The expression as a value of this type, on rows for which `meant` is true. `meant` must not be a constant."""
    from pyspark.sql import functions as F

    value = F.expr(sql).cast(kind)
    made = F.struct(value.alias("value"))
    if kind.lower() in ("date", "timestamp"):
        made = F.when(value.isNull() | within_years(value, kind), made)
    return F.when(meant, tried(made))


def within_years(value: Expression, kind: str) -> Expression:
    """Whether a date or a time is in the years 1 to 9999."""
    from pyspark.sql import functions as F

    first, last = (F.lit(text).cast("timestamp").cast(kind) for text in (FIRST, LAST))
    return value.between(first, last)


def tried(made: Any) -> Expression:
    """Null where it raises an error. Spark has `try_` functions for some errors only, and no SQL for this."""
    from pyspark import SparkContext
    from pyspark.sql.classic.column import Column

    context: Any = SparkContext._active_spark_context
    spark = context._jvm.org.apache.spark.sql
    tried = spark.catalyst.expressions.TryEval(spark.classic.ExpressionUtils.expression(made._jc))
    return Column(spark.classic.ExpressionUtils.column(tried))
