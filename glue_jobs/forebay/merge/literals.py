"""Values of columns as literals, by which Delta skips files that cannot contain them.

In: a column's values, as rows have them. Out: literals that are these values. Dates and times travel as texts: Python has no
years after 9999, and treats a time as one in the process's own time zone, in which an hour may occur twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql.types import DataType

TIMES = ("date", "timestamp", "timestamp_ntz")


def has_literals(kind: DataType) -> bool:
    """Whether values of this type compare exactly, and statistics of files cover them."""
    from pyspark.sql.types import BooleanType, DecimalType, IntegralType, StringType

    return _is_time(kind) or isinstance(kind, (BooleanType, DecimalType, IntegralType, StringType))


def to_collect(value: Expression, kind: DataType) -> Expression:
    """The expression to collect for a `literal`."""
    return value.cast("string") if _is_time(kind) else value


def literal(collected: Any, kind: DataType) -> Expression:
    """The literal of a value that is not null."""
    from pyspark.sql import functions as F

    return F.expr(f"{kind.simpleString()} '{collected}'") if _is_time(kind) else F.lit(collected)


def _is_time(kind: DataType) -> bool:
    return kind.simpleString() in TIMES
