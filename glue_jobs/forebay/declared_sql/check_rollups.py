"""Checks the SQL of rollups with Spark before the first merge, as far as the declarations name the columns.

In: a service. Out: problems: SQL that Spark does not accept, that is not an aggregate where one is needed, that may give a
different answer when it is recomputed, or that names a column which its tables never have. A table may get columns from its
records. So names that nobody declared are a note there: a merge fails until a record has the column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.declared_sql.analysis import forbidden_in, message_of, refusals
from forebay.declared_sql.columns import OWN_COLUMNS, spark_type
from forebay.errors import Problem
from forebay.table.schema import has_map
from forebay.table.shaping import RESCUED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OWN_TYPES = dict(zip(OWN_COLUMNS, ("string", "long", "long", "timestamp"), strict=True)) | {RESCUED: "string"}
UNKNOWN_COLUMN = "UNRESOLVED_COLUMN"
NO_AGGREGATE, BY_CHANCE = "is not an aggregate, such as sum(amount)", "gives a different answer each time"
MEANS = {
    "MISSING_GROUP_BY": NO_AGGREGATE,
    "MISSING_AGGREGATION": NO_AGGREGATE,
    "AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC_EXPRESSION": BY_CHANCE,
}
"""Spark's conditions, in our words."""
ALWAYS = ("PARSE_SYNTAX_ERROR", "UNRESOLVED_ROUTINE", *MEANS)
"""Wrong whatever columns there are."""
MOST_UNKNOWN = 50


def rollup_problems(spark: SparkSession, service: Service) -> Iterator[Problem]:
    for where, sql, _, why in _all(spark, service):
        for one in why:
            yield Problem(where, one, sql)


def missing_columns(spark: SparkSession, service: Service) -> Iterator[Problem]:
    """Names that neither a declaration nor a record makes a column. A job starts all the same: a table may have the column from
    an earlier declaration."""
    for where, _, unknown, _ in _all(spark, service):
        for one in unknown:
            if one.never:
                yield Problem(where, f"{one.table} never has the column {one.name}", "declare it there")


def unknown_columns(spark: SparkSession, service: Service) -> Iterator[str]:
    """Names that only a record can bring."""
    for where, _, unknown, _ in _all(spark, service):
        for one in unknown if not any(name.never for name in unknown) else ():
            yield (
                f"{where}: {one.table} gets its column {one.name} with the first record that has it, and no merge succeeds "
                "before that; declare it, or correct the name"
            )


@dataclass(frozen=True)
class Unknown:
    """A name that is not a declared column of a table. `never`: its records bring none either."""

    name: str
    table: str
    never: bool


def _all(spark: SparkSession, service: Service) -> Iterator[tuple[str, str, list[Unknown], list[str]]]:
    """Each expression of each rollup, of each of its tables: where it is, its text, unknown names, and what is wrong."""
    for rollup in service.rollups:
        for name in rollup.tables:
            if (table := _maker(service, name)) is None:
                continue
            rows, never = _nobody(spark, table, name), table.undeclared.become != "columns"
            for key, sql in rollup.sql.items():
                unknown, why = _looked_at(rows, key, sql)
                found = [Unknown(one, name, never) for one in unknown]
                yield f"rollup {rollup.name}: {key}", sql, found, [f"for table {name}: {one}" for one in why]


def faults(rows: DataFrame, key: str, sql: str) -> list[str]:
    """Mistakes in one of a rollup's expressions, as Spark's own analysis of these rows finds them."""
    try:
        return _faults(rows, key, sql)
    except refusals() as refused:
        return [_meant(refused)]


def _looked_at(rows: DataFrame, key: str, sql: str) -> tuple[list[str], list[str]]:
    """Names that are not columns yet, and mistakes. Each of them counts as null, which fits everywhere; where that is not
    so, nothing is known."""
    from pyspark.sql import functions as F

    unknown: list[str] = []
    for _ in range(MOST_UNKNOWN):
        try:
            return unknown, _faults(rows, key, sql)
        except refusals() as refused:
            condition = _condition(refused)
            if condition.startswith(UNKNOWN_COLUMN):
                name = _first_part(refused)
                if name in unknown:
                    break
                unknown.append(name)
                rows = rows.withColumn(name, F.lit(None))
            elif unknown and not condition.startswith(ALWAYS):
                break
            else:
                return unknown, [_meant(refused)]
    return unknown, []


def _faults(rows: DataFrame, key: str, sql: str) -> list[str]:
    from pyspark.sql import functions as F

    is_aggregate = key.startswith("columns.")
    found: Any = rows.agg(F.expr(sql)) if is_aggregate else rows.select(F.expr(sql))
    plan = found._jdf.queryExecution().analyzed()
    if plan.nodeName() != ("Aggregate" if is_aggregate else "Project"):
        return [NO_AGGREGATE if is_aggregate else "uses more than one row"]
    why = forbidden_in(plan.expressions().head())
    kind = found.schema.fields[0].dataType
    if not why and key == "where" and kind.typeName() not in ("boolean", "void"):
        why = [f"must be a boolean, but is {kind.typeName()}"]
    if not why and key.startswith("group_by.") and has_map(kind):
        why = ["has a map, and maps cannot be compared: name one of its values, such as tags['level']"]
    return why


def _maker(service: Service, name: str) -> Table | None:
    """The declaration that makes a table, or the changes of a state."""
    return service.maker_of(name) or next((one for one in service.tables if one.may_merge_into(name)), None)


def _nobody(spark: SparkSession, table: Table, name: str) -> DataFrame:
    """No rows, with the columns that are declared of a table or of its state."""
    columns = {column.name: spark_type(column) for column in table.columns} | OWN_TYPES
    if table.keep_record:
        columns["_record"] = "string"
    if table.merge is not None and not table.makes(name):
        columns |= dict.fromkeys(table.merge.own_columns, columns[table.merge.sequence_by[0]])
    return spark.createDataFrame([], ", ".join(f"`{column}` {kind}" for column, kind in columns.items()))


def _condition(refused: Any) -> str:
    return (refused.getCondition() if hasattr(refused, "getCondition") else None) or ""


def _meant(refused: Exception) -> str:
    return MEANS.get(_condition(refused).partition(".")[0], f"is not valid SQL: {message_of(refused)}")


def _first_part(refused: Any) -> str:
    """The first part of the name that Spark did not find, such as `a`.`b`."""
    name = str(refused.getMessageParameters()["objectName"])
    return name[1:].partition("`")[0] if name.startswith("`") else name.partition(".")[0]
