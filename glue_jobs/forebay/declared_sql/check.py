"""Checks declared SQL and patterns with Spark before the first record.

In: the declarations. Out: nothing, or all problems at once as `InvalidConfiguration`: SQL that Spark does not accept, that is
not boolean where a boolean is needed, that may give a different answer when a batch is replayed, that uses more than its own
row, or with which a record could kill a worker (`bound`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from forebay.declaration.column import Column
from forebay.declaration.column_type import is_nested
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.declared_sql.analysis import forbidden_in, message_of, refusals
from forebay.declared_sql.attempt import attempt
from forebay.declared_sql.bound import unsafe
from forebay.declared_sql.check_rollups import rollup_problems
from forebay.declared_sql.columns import spark_type
from forebay.declared_sql.node import node_of
from forebay.declared_sql.references import has_star
from forebay.errors import InvalidConfiguration, Problem

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

USUAL_PATTERNS = {Table.model_fields["values"].default}


def check_expressions(spark: SparkSession, service: Service) -> None:
    """All problems of all expectations, derived columns and rollups at once."""
    problems = [problem for table in service.tables for problem in _problems(spark, table)]
    problems += rollup_problems(spark, service)
    if problems:
        raise InvalidConfiguration(problems)


def _problems(spark: SparkSession, table: Table) -> Iterator[Problem]:
    read = [column for column in table.columns if column.expression is None]
    nobody = _nobody(spark, read)
    for column in table.columns:
        if column.expression is not None:
            where = f"table {table.name}: columns.{column.name}"
            faults = _faults(nobody, column.expression, spark_type(column))
            yield from (Problem(where, what, column.expression) for what in faults)
    nobody = _nobody(spark, table.columns)
    checks = {f"expectations.{name}": expectation.check for name, expectation in table.expectations.items()}
    if table.where_sql is not None:
        checks["where_sql"] = table.where_sql
    if table.merge is not None and table.merge.delete_when is not None:
        checks["merge.delete_when"] = table.merge.delete_when
    for name, check in checks.items():
        faults = _faults(nobody, check, "boolean")
        yield from (Problem(f"table {table.name}: {name}", what, check) for what in faults)
    yield from _bad_patterns(spark, table)


def _bad_patterns(spark: SparkSession, table: Table) -> Iterator[Problem]:
    """Patterns that Spark would refuse in the middle of a batch."""
    from pyspark.sql import functions as F

    text = F.col("id").cast("string")
    patterns = {"values": table.values, **{f"partition_values.{name}": p for name, p in table.partition_values.items()}}
    patterns |= {f"where.{path}.matches": c.matches for path, c in table.where.items() if c.matches is not None}
    asked = [(key, pattern, text.rlike(pattern)) for key, pattern in patterns.items()]
    asked += [
        (f"columns.{column.name}.formats", pattern, F.try_to_timestamp(text, F.lit(pattern)))
        for column in table.columns
        for pattern in column.formats
    ]
    asked = [(key, pattern, tried) for key, pattern, tried in asked if pattern not in USUAL_PATTERNS]
    if not asked or _refused(spark.range(1), *(tried for *_, tried in asked)) is None:
        return
    for key, pattern, tried in asked:
        if (why := _refused(spark.range(1), tried)) is not None:
            yield Problem(f"table {table.name}: {key}", f"is not a pattern that Spark accepts: {why}", pattern)


def _refused(rows: DataFrame, *asked: Expression) -> str | None:
    """Spark's error when it evaluates these, whatever the rows hold; None where there is none."""
    try:
        rows.select(*asked).collect()
    except refusals() as refused:
        return message_of(refused)
    return None


def _nobody(spark: SparkSession, columns: Sequence[Column]) -> DataFrame:
    """One row of nulls, unknown to the optimizer."""
    from pyspark.sql import functions as F

    nothing = F.when(F.col("id") < 0, F.col("id").cast("string"))
    return spark.range(1).select(*(_typed(nothing, column).alias(column.name) for column in columns))


def _typed(nothing: Expression, column: Column) -> Expression:
    from pyspark.sql import functions as F

    if column.type == "map" or is_nested(column.type):
        return F.from_json(nothing, spark_type(column))
    return nothing.try_cast(spark_type(column))


def _faults(rows: DataFrame, check: str, wanted: str) -> Iterator[str]:
    """Faults of an expression, by Spark's own analysis, and on a row of nulls."""
    from pyspark.sql import functions as F

    try:
        asked: Any = rows.select(F.expr(check))
        kind = asked.schema.fields[0].dataType.typeName()
        if wanted == "boolean" and kind != wanted:
            yield f"must be a boolean, but is {kind}"
            return
        made = rows.select(F.expr(check).cast(wanted)).schema.fields[0].dataType
        if (why := misnamed(asked.schema.fields[0].dataType, made)) is not None:
            yield why
            return
        if has_star(check):
            yield "must name its columns, without *"
            return
    except refusals() as refused:
        yield f"is not valid SQL: {message_of(refused)}"
        return
    plan = _analysed(asked)
    if plan.nodeName() != "Project":
        yield "uses more than one row"
        return
    expression = plan.expressions().head()
    forbidden = forbidden_in(expression)
    if not forbidden and _steps(plan) != _steps(_analysed(rows)) + 1:
        forbidden = ["uses more than one row"]
    if not forbidden and (why := unsafe(node_of(expression))) is not None:
        forbidden = [f"is not safe for every record: {why}"]
    yield from forbidden
    if not forbidden and (why := _refused(rows, attempt(check, wanted, F.rand() < 2))) is not None:
        yield f"cannot be computed for any row: {why}"


def misnamed(found: DataType, wanted: DataType) -> str | None:
    """Why the fields of a struct would get each other's values: Spark casts them by their positions."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(found, StructType) and isinstance(wanted, StructType):
        names, others = ([field.name for field in one.fields] for one in (found, wanted))
        if [*map(str.lower, names)] != [*map(str.lower, others)]:
            return (
                f"makes a struct of {', '.join(names)}, but {', '.join(others)} are declared, in this order: "
                f"use named_struct('{others[0]}', ...)"
            )
        pairs = [(one.dataType, other.dataType) for one, other in zip(found.fields, wanted.fields, strict=True)]
    elif isinstance(found, ArrayType) and isinstance(wanted, ArrayType):
        pairs = [(found.elementType, wanted.elementType)]
    elif isinstance(found, MapType) and isinstance(wanted, MapType):
        pairs = [(found.valueType, wanted.valueType)]
    else:
        pairs = []
    return next((why for pair in pairs if (why := misnamed(*pair)) is not None), None)


def _analysed(rows: Any) -> Any:
    return rows._jdf.queryExecution().analyzed()


def _steps(plan: Any) -> int:
    """Windows of time, for one, are steps of their own: outside of what `attempt` catches, and without rows that have no
    time."""
    return str(plan.numberedTreeString()).count("\n")
