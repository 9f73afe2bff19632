"""The columns of a table's rows, as Spark expressions over the parsed record: what is declared, and what is forebay's own.

The fields that nobody declared are not looked at here: the record's text goes with its row (`DOCUMENT`), and becomes columns
where the row is written, because each table has other ones. A value that does not fit its declared column is null there and
goes along as text (`MISFITS`), to be rescued.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from forebay.batch.attempt import attempt
from forebay.batch.routing import field
from forebay.declaration.column import Column
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.record.growth import Rules
from forebay.table.shaping import DOCUMENT, MISFITS, RESCUED

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

__all__ = [
    "OWN_COLUMNS",
    "column_of_text",
    "declared_column",
    "declared_misfits",
    "rules_of",
    "spark_type",
    "with_declared_columns",
    "with_failed",
    "with_table_columns",
]

FAILED = "_failed"

OWN_COLUMNS = ("_file_id", "_line", "_batch", "_ingested_at")

SPARK_TYPES = {
    "string": "STRING",
    "json": "STRING",
    "map": "MAP<STRING,STRING>",
    "long": "BIGINT",
    "int": "INT",
    "double": "DOUBLE",
    "float": "FLOAT",
    "boolean": "BOOLEAN",
    "timestamp": "TIMESTAMP",
    "date": "DATE",
    "binary": "BINARY",
}
EPOCH = r"^-?(\d{9,19}(\.\d+)?|\d(\.\d+)?E\d{1,2})$"  # the second is how Spark writes a large fraction
UNITS = ((10**11, 10**6), (10**14, 10**3), (10**17, 1))
"""A number below the first is a time in a unit of so many microseconds: seconds until the year 5138, milliseconds until then,
microseconds until then; larger ones are nanoseconds."""


def with_table_columns(rows: DataFrame, service: Service, table: Table, *, batch: int, at: datetime) -> DataFrame:
    """Rows of this declaration with all columns that they get from Spark, what is needed for the rest, and `_table`."""
    from pyspark.sql import functions as F

    own = {"_batch": F.lit(batch).cast("long"), "_ingested_at": F.lit(at)}
    spoiled = declared_misfits(service, table.columns).alias(MISFITS)
    made = with_declared_columns(rows.select("*", spoiled), service, table)
    misfits = with_failed(F.col(f"_row.{MISFITS}"), F.col(FAILED)).alias(MISFITS)
    columns = [F.col(column.name) for column in table.columns]
    columns += [own.get(name, F.col(f"_row.{name}")).alias(name) for name in OWN_COLUMNS]
    if table.keep_record:
        columns.append(F.rtrim("_row.value").alias("_record"))
    return made.select("_row._table", *columns, F.col("_row.value").alias(DOCUMENT), misfits)


def with_declared_columns(
    rows: DataFrame, service: Service, table: Table, meant: Expression | None = None
) -> DataFrame:
    """`_row`, which is all that there was, and the declared columns under their own names, those derived from others too;
    `_failed`, the names of those that could not be computed; `_too_old`, `_too_new`. Names cannot meet: forebay's own begin
    with an underscore and stand inside of `_row`. Derived columns are computed for the rows that are `meant`: without it,
    for all that have a table."""
    from pyspark.sql import functions as F

    mine = F.col("_row._declared").isNotNull() if meant is None else meant
    read = [c for c in table.columns if c.expression is None]
    tried = [(c, attempt(c.expression, spark_type(c), mine)) for c in table.columns if c.expression is not None]
    derived = [made["value"].alias(column.name) for column, made in tried]
    failures = [F.when(mine & made.isNull(), column.name) for column, made in tried]
    failed = F.array_compact(F.array(*failures)) if failures else F.array().cast("array<string>")
    derived.append(failed.alias(FAILED))
    made = rows.select(F.struct("*").alias("_row"), *(declared_column(service, c).alias(c.name) for c in read))
    when = table.event_time
    if when is None:
        return made.select("*", *derived, F.lit(False).alias("_too_old"), F.lit(False).alias("_too_new"))
    moment, landed = F.col(when.column), F.col("_row._landed_at")
    if when.otherwise == "landed":
        made = made.withColumn(when.column, F.coalesce(moment, landed))
    old = F.lit(False) if when.oldest_days is None else moment < landed - _seconds(when.oldest_days * 86_400)
    new = F.lit(False) if when.ahead_hours is None else moment > landed + _seconds(when.ahead_hours * 3600)
    made = made.withColumn("_too_old", F.coalesce(old, F.lit(False)))
    made = made.withColumn("_too_new", F.coalesce(new, F.lit(False)))
    made = made.withColumn("_moment", moment)
    if when.outside == "bucket":
        outside = F.col("_too_old") | F.col("_too_new")
        bucket = F.lit(when.bucket.replace(tzinfo=when.bucket.tzinfo or UTC))
        made = made.withColumn(when.column, F.when(outside, bucket).otherwise(moment))
    made = made.select("*", *derived)
    return made.withColumn(when.column, F.col("_moment"))


def with_failed(misfits: Expression, failed: Expression) -> Expression:
    """What did not fit, and each column that could not be computed, as null: there is no value of it to keep."""
    from pyspark.sql import functions as F

    said = F.concat_ws(",", F.transform(failed, lambda name: F.concat(F.lit('"'), name, F.lit('":null'))))
    both = F.concat(F.lit("{"), said, F.coalesce(F.concat(F.lit(","), F.substr(misfits, F.lit(2))), F.lit("}")))
    return F.when(F.size(failed) > 0, both).otherwise(misfits)


def _seconds(count: float) -> Expression:
    from pyspark.sql import functions as F

    return F.make_dt_interval(secs=F.lit(count).cast("decimal(18,6)"))


def rules_of(table: Table) -> Rules:
    """How a record's other fields become columns."""
    undeclared = table.undeclared
    tree: dict[str, Any] = {}
    for path in sorted(column.source for column in table.columns if column.of_record):
        _plant(tree, path.split("."))
    return Rules(
        depth=undeclared.depth,
        flatten=undeclared.flatten,
        new_columns=undeclared.new_columns,
        columns=undeclared.max_columns,
        undeclared={"columns": "columns", "rescued": "rescue", "ignored": "ignore"}[undeclared.become],
        declared=tree,
        reserved=frozenset({*(c.name.lower() for c in table.columns), *OWN_COLUMNS, RESCUED, "_record"}),
    )


def declared_column(service: Service, column: Column) -> Expression:
    """The column's value; null where the record has none that fits."""
    return column_of_text(field(service, column.source), column)


def column_of_text(text: Expression, column: Column) -> Expression:
    """The value that this text is in the column; null where it is none."""
    from pyspark.sql import functions as F

    if column.type in ("string", "json"):
        return text
    if column.type == "map":
        return F.from_json(text, "map<string,string>")
    if column.type in ("timestamp", "date"):
        moment = _moment(text, column)
        return moment if column.type == "timestamp" else moment.cast("date")
    return text.try_cast(SPARK_TYPES.get(column.type, column.type))


def spark_type(column: Column) -> str:
    return SPARK_TYPES.get(column.type, column.type)


def _moment(text: Expression, column: Column) -> Expression:
    """A point in time, of whatever text: the declared formats, or ISO 8601, or a number since 1970 told by its size."""
    from pyspark.sql import functions as F

    if column.formats:
        return F.coalesce(*(F.try_to_timestamp(text, F.lit(pattern)) for pattern in column.formats))
    number = text.try_cast("decimal(38,9)")
    micros = number / 1000
    for limit, unit in reversed(UNITS):
        micros = F.when(F.abs(number) < limit, number * unit).otherwise(micros)
    since_1970 = F.timestamp_micros(F.floor(micros).try_cast("bigint"))
    return F.when(text.rlike(EPOCH), since_1970).otherwise(text.try_cast("timestamp"))


def declared_misfits(
    service: Service, columns: Iterable[Column], known: Mapping[str, tuple[Expression, Expression]] | None = None
) -> Expression:
    """What did not fit, as JSON of text by path; null where everything did. `known` are texts and values of columns, by name,
    that come from elsewhere than the record."""
    from pyspark.sql import functions as F

    spoiled = []
    for column in columns:
        if column.type not in ("string", "json") and column.of_record:
            came = field(service, column.source), declared_column(service, column)
            text, value = (known or {}).get(column.name, came)
            spoiled.append((column.source, text, text.isNotNull() & value.isNull()))
    if not spoiled:
        return F.lit(None).cast("string")
    # A struct, and not a map that is filtered: to_json leaves out nulls as well, and Spark makes code of it.
    by_path = F.struct(*(F.when(misfit, text).alias(path) for path, text, misfit in spoiled))
    return F.when(reduce(lambda a, b: a | b, (misfit for *_, misfit in spoiled)), F.to_json(by_path))


def _plant(tree: dict[str, Any], parts: list[str]) -> None:
    """Adds a path; where an object is declared whole, its fields are in it already."""
    for at, part in enumerate(parts):
        if tree.get(part) == {}:
            return
        tree = tree.setdefault(part, {})
        if at == len(parts) - 1:
            tree.clear()
