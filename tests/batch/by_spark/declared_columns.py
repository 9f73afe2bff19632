"""The declared columns of rows: those read from the record, an event time within its bounds, and those derived by SQL.

In: rows with their parsed record. Out: the columns of one table, to be written (`with_table_columns`); or those of many tables
side by side, each under a name of its own (`with_declared_columns`, `of`), for what is asked of rows before they are written.
Nothing is raised for a value: one that does not fit is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from forebay.declaration.column import Column
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.declared_sql.attempt import attempt
from forebay.declared_sql.columns import OWN_COLUMNS, spark_type
from forebay.declared_sql.references import columns_in, renamed
from forebay.table.shaping import DOCUMENT, MISFITS
from tests.batch.by_spark.records import declared_column, declared_misfits, with_failed

FAILED, TOO_OLD, TOO_NEW, MOMENT = "_failed", "_too_old", "_too_new", "_moment"


def with_table_columns(rows: DataFrame, service: Service, table: Table, *, batch: int, at: datetime) -> DataFrame:
    """Rows of this declaration with all columns that they get from Spark, what is needed for the rest, and `_table`."""
    own = {"_batch": F.lit(batch).cast("long"), "_ingested_at": F.lit(at)}
    spoiled = declared_misfits(service, table).alias(MISFITS)
    made = with_declared_columns(rows.select("*", spoiled), service, {0: table})
    misfits = with_failed(F.col(MISFITS), of(0, FAILED)).alias(MISFITS)
    columns = [of(0, column.name).alias(column.name) for column in table.columns]
    columns += [own.get(name, F.col(name)).alias(name) for name in OWN_COLUMNS]
    if table.keep_record:
        columns.append(F.rtrim("value").alias("_record"))
    return made.select("_table", *columns, F.col("value").alias(DOCUMENT), misfits)


def with_declared_columns(
    rows: DataFrame, service: Service, tables: Mapping[int, Table], meant: Callable[[int], Expression] | None = None
) -> DataFrame:
    """The rows with the declared columns of these tables, those derived from others too (`of`). `FAILED` has the names of
    those that could not be computed. A declared event time says whether it is `TOO_OLD` or `TOO_NEW`. The columns of a table
    are null but for the rows that are `meant` for it: without it, all that have a table.

    However many tables there are, these are three steps. Spark's work on a plan grows with the square of its steps."""

    def mine(number: int) -> Expression:
        return F.col("_declared").isNotNull() if meant is None else meant(number)

    read: dict[str, Expression] = {}
    timed: dict[str, Expression] = {}
    derived: dict[str, Expression] = {}
    for number, table in tables.items():
        for column in (c for c in table.columns if c.expression is None):
            value = _with_default(declared_column(service, column), column, table)
            read[_named(number, column.name)] = value if meant is None else F.when(mine(number), value)
        times = _event_time(number, table)
        timed |= {_named(number, name): value for name, value in times.items()}
        derived |= {_named(number, name): value for name, value in _derived(number, table, mine(number)).items()}
        if table.event_time is not None and times.get(MOMENT) is not None:
            derived[_named(number, table.event_time.column)] = of(number, MOMENT)
    for step in (read, timed, derived):
        rows = rows.withColumns(step) if step else rows
    return rows


def of(number: int, name: str) -> Expression:
    """A declared column, or what else `with_declared_columns` made, by the number that the declaration has there."""
    return F.col(_named(number, name))


def asked_of(number: int, sql: str, kind: str, mine: Expression) -> Expression:
    """Declared SQL about the columns of this declaration (`attempt`)."""
    return attempt(renamed(sql, {name: f"`{_named(number, name)}`" for name in columns_in(sql)}), kind, mine)


def _named(number: int, name: str) -> str:
    return f"_t{number}_{name}"


def _with_default(value: Expression, column: Column, table: Table) -> Expression:
    when = table.event_time
    landed = when is not None and when.column == column.name and when.otherwise == "landed"
    return F.coalesce(value, F.col("_landed_at")) if landed else value


def _event_time(number: int, table: Table) -> dict[str, Expression]:
    """Whether it is outside of its bounds. Where such rows have a bucket, columns are derived from the bucket's time: until
    then it replaces the time of the event."""
    when = table.event_time
    if when is None:
        return {}
    moment, landed = of(number, when.column), F.col("_landed_at")
    old = F.lit(False) if when.oldest_days is None else moment < landed - _seconds(when.oldest_days * 86_400)
    new = F.lit(False) if when.ahead_hours is None else moment > landed + _seconds(when.ahead_hours * 3600)
    old, new = (F.coalesce(outside, F.lit(False)) for outside in (old, new))
    made = {TOO_OLD: old, TOO_NEW: new}
    if when.outside == "bucket":
        bucket = F.lit(when.bucket.replace(tzinfo=when.bucket.tzinfo or UTC))
        made |= {MOMENT: moment, when.column: F.when(old | new, bucket).otherwise(moment)}
    return made


def _derived(number: int, table: Table, mine: Expression) -> dict[str, Expression]:
    tried = {
        c.name: asked_of(number, c.expression, spark_type(c), mine) for c in table.columns if c.expression is not None
    }
    failures = [F.when(mine & made.isNull(), name) for name, made in tried.items()]
    failed = F.array_compact(F.array(*failures)) if failures else F.array().cast("array<string>")
    return {**{name: made["value"] for name, made in tried.items()}, FAILED: failed}


def _seconds(count: float) -> Expression:
    return F.make_dt_interval(secs=F.lit(count).cast("decimal(18,6)"))
