"""Spark expressions over a record's text, by Java's `RecordFields` and `Moment`: with the original digits, and no guesses.

Spark's `from_json` and `get_json_object` pass each number with a fraction through a double. This reads the bytes instead, in
one pass, and calls no Python. The classes are in the jar of the log store.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from forebay.spark.session import MOMENT, RECORD_FIELDS

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression

__all__ = [
    "HALVES",
    "PROBLEM",
    "day_of",
    "decimal_of",
    "is_exact",
    "members_of",
    "moment_of",
    "moment_since_1970",
    "plan_of",
    "read_fields",
    "written_fields",
]

PROBLEM, HALVES = "?problem", "?halves"
"""Beside the fields, whose paths have no question mark: why a record cannot be read; whether a string in it is not text."""


def plan_of(steps: Sequence[str | int]) -> str:
    """A path as `RecordFields` takes it."""
    return json.dumps(list(steps))


def read_fields(text: Expression, paths: Sequence[Sequence[str | int]]) -> Expression:
    """A struct with a text for each path, named by its number; and `PROBLEM` and `HALVES`."""
    from pyspark.sql import functions as F

    fields = "".join(f", `{number}` STRING" for number in range(len(paths)))
    plan = F.lit(f"[{','.join(map(plan_of, paths))}]")
    return _call("read", f"STRUCT<`{PROBLEM}` STRING, `{HALVES}` BOOLEAN{fields}>", text, plan)


def written_fields(text: Expression, plan: Expression) -> Expression:
    """The fields that the plan names, as a JSON array of objects with one of them each; those that are null are left out."""
    return _call("written", "STRING", text, plan)


def members_of(text: Expression) -> Expression:
    """An object as a map of texts; null for anything else."""
    return _call("members", "MAP<STRING, STRING>", text)


def decimal_of(text: Expression, kind: str) -> Expression:
    """The number as `decimal(p,s)`; null where that would have to round it."""
    from pyspark.sql import functions as F

    precision, scale = map(int, kind.removeprefix("decimal(").removesuffix(")").split(","))
    return _call("decimal", kind, text, F.lit(precision), F.lit(scale))


def is_exact(text: Expression, *, single: bool) -> Expression:
    """Whether a double, or a float where it is `single`, gives the number back that the text is."""
    from pyspark.sql import functions as F

    return _call("isExact", "BOOLEAN", text, F.lit(single))


def moment_of(text: Expression) -> Expression:
    """A time, of ISO 8601 with a whole date; null for anything else, and beyond the years 1 to 9999."""
    return _call("micros", "TIMESTAMP", text, owner=MOMENT)


def day_of(text: Expression) -> Expression:
    """A date, of the same texts, whatever the offset."""
    return _call("days", "DATE", text, owner=MOMENT)


def moment_since_1970(text: Expression, places: int) -> Expression:
    """A time, of a number that counts units of this many decimal places of a second since 1970."""
    from pyspark.sql import functions as F

    return _call("since1970", "TIMESTAMP", text, F.lit(places), owner=MOMENT)


def _call(method: str, kind: str, *arguments: Any, owner: str = RECORD_FIELDS) -> Expression:
    """Spark's `StaticInvoke`: the method itself in the generated code, without a conversion of what goes in and out."""
    from pyspark import SparkContext
    from pyspark.sql.classic.column import Column

    context: Any = SparkContext._active_spark_context
    jvm = context._jvm
    spark = jvm.org.apache.spark.sql
    convert = spark.classic.ExpressionUtils
    given = jvm.PythonUtils.toSeq([convert.expression(argument._jc) for argument in arguments])
    nothing = jvm.PythonUtils.toSeq([])
    returned = spark.types.DataType.fromDDL(kind)
    found = jvm.org.apache.spark.util.Utils.classForName(owner, True, False)
    invoked = spark.catalyst.expressions.objects.StaticInvoke(
        found, returned, method, given, nothing, True, True, True, jvm.scala.Option.empty()
    )
    return Column(convert.column(invoked))
