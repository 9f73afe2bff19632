"""Expectations: predicates over the declared columns, checked before anything runs, and asked of every row in the pass that
routes it.

In: the rows with their routes, the declarations. Out: `_violated`, the names of all expectations that a row violates, and a
`Verdict` for each expectation of each table of a batch. A predicate that Spark does not take, that is no yes or no, or that
may answer differently when a batch is replayed, is `Misdeclared`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from forebay.batch.accounting import Fate
from forebay.batch.columns import column_schema, declared_column
from forebay.errors import Misdeclared, Problem
from forebay.service import Service, Table

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["COLUMNS", "Verdict", "check_expectations", "expectation_fate", "verdicts", "with_violations"]

COLUMNS = (
    "day date, at timestamp, service string, generation string, batch long, table string, expectation string, "
    "on_violation string, rows long, violated long, failed boolean"
)
VIOLATED = "_violated"

FORBIDDEN = {
    **dict.fromkeys(("CallMethodViaReflection", "TryReflect"), "calls Java"),
    **dict.fromkeys(("ScalarSubquery", "Exists", "ListQuery", "InSubquery"), "asks other tables"),
    **dict.fromkeys(
        ("CurrentTimestamp", "CurrentDate", "Now", "LocalTimestamp", "CurrentTime"), "depends on the clock"
    ),
    **dict.fromkeys(("InputFileName", "CurrentUser", "SparkVersion"), "depends on where it runs"),
}


@dataclass(frozen=True)
class Verdict:
    """How the rows of one table in one batch stood up to one expectation."""

    table: str
    expectation: str
    on_violation: str
    rows: int
    violated: int
    failed: bool

    def row(self, *, at: datetime, **shared: Any) -> dict[str, Any]:
        names = ("table", "expectation", "on_violation", "rows", "violated", "failed")
        return {"day": at.date(), "at": at, **shared, **{name: getattr(self, name) for name in names}}


def check_expectations(spark: SparkSession, service: Service) -> None:
    """All problems of all expectations at once."""
    problems = [problem for table in service.tables for problem in _problems(spark, table)]
    if problems:
        raise Misdeclared(problems)


def with_violations(rows: DataFrame, service: Service) -> DataFrame:
    """The rows with `_violated`: null where nothing is. Every declaration's columns stand under their own names only while
    its predicates are asked, so that two declarations may use one name for different things."""
    from pyspark.sql import functions as F

    none = F.lit(None).cast("array<string>")
    rows = rows.withColumn(VIOLATED, none)
    for number, table in enumerate(service.tables):
        if not table.expectations:
            continue
        before = rows.columns
        declared = [declared_column(service, column).alias(column.name) for column in table.columns]
        asked = rows.select(F.struct("*").alias("_row"), *declared)
        names = F.array_compact(F.array(*_violated_names(table)))
        mine = F.col("_row._declared") == number
        violated = F.when(mine & (F.size(names) > 0), names).otherwise(F.col(f"_row.{VIOLATED}"))
        kept = [F.col(f"_row.{name}").alias(name) for name in before if name != VIOLATED]
        rows = asked.select(*kept, violated.alias(VIOLATED))
    return rows


def expectation_fate(service: Service) -> Expression:
    """What a row's violations make of it: `quarantine`, or `drop`, or null."""
    from pyspark.sql import functions as F

    fate = F.lit(None).cast("string")
    for number, table in enumerate(service.tables):
        for outcome in ("drop", "quarantine"):
            names = [name for name, e in table.expectations.items() if e.on_violation == outcome]
            if names:
                hit = F.arrays_overlap(F.col(VIOLATED), F.array(*map(F.lit, names)))
                fate = F.when((F.col("_declared") == number) & hit, outcome).otherwise(fate)
    return fate


def verdicts(service: Service, fates: Sequence[Fate]) -> list[Verdict]:
    """For every expectation of every table that got rows, also those that all rows fulfilled."""
    rows: dict[tuple[str, int], int] = {}
    violated: dict[tuple[str, str], int] = {}
    for fate in fates:
        if fate.table is not None and fate.declared is not None:
            rows[fate.table, fate.declared] = rows.get((fate.table, fate.declared), 0) + fate.rows
            for name in fate.violated:
                violated[fate.table, name] = violated.get((fate.table, name), 0) + fate.rows
    return [
        _verdict(service.tables[declared], table, name, count, violated.get((table, name), 0))
        for (table, declared), count in sorted(rows.items())
        for name in service.tables[declared].expectations
    ]


def _verdict(declared: Table, table: str, name: str, rows: int, violated: int) -> Verdict:
    expectation = declared.expectations[name]
    limit = expectation.fails_above
    failed = limit is not None and violated * 100 > limit * rows
    return Verdict(table, name, expectation.on_violation, rows, violated, failed)


def _violated_names(table: Table) -> Iterator[Expression]:
    from pyspark.sql import functions as F

    for name, expectation in table.expectations.items():
        yield F.when(~F.expr(expectation.check), name)


def _problems(spark: SparkSession, table: Table) -> Iterator[Problem]:
    nobody = spark.createDataFrame([], column_schema(table.columns)) if table.columns else spark.range(0).select()
    for name, expectation in table.expectations.items():
        where = f"table {table.name}: expectations.{name}"
        yield from (Problem(where, what, expectation.check) for what in _faults(nobody, expectation.check))


def _faults(rows: DataFrame, check: str) -> Iterator[str]:
    """What is wrong with a predicate, as Spark's own analysis has it."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    try:
        asked: Any = rows.select(F.expr(check))
    except PySparkException as refused:
        yield f"is not understood: {str(refused).splitlines()[0]}"
        return
    if (kind := asked.schema.fields[0].dataType.typeName()) != "boolean":
        yield f"is not a yes or no, but {kind}"
    plan = asked._jdf.queryExecution().analyzed()
    if plan.nodeName() != "Project":
        yield "is about more than one row"
        return
    expression = plan.expressions().head()
    yield from sorted({FORBIDDEN[kind] for kind in _classes(expression) if kind in FORBIDDEN})
    if not expression.deterministic():
        yield "gives another answer every time"


def _classes(expression: Any) -> Iterable[str]:
    yield expression.getClass().getSimpleName()
    children = expression.children()
    for at in range(children.size()):
        yield from _classes(children.apply(at))
