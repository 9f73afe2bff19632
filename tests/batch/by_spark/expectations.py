"""The checks of a row before it is written: expectations, bounds of its time, values that may name a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from forebay.batch.expectations import USUAL_VALUES
from forebay.batch.reasons import BAD_PARTITION_VALUE, EVENT_IN_THE_FUTURE, EVENT_TOO_OLD, NO_KEY, NO_SEQUENCE
from forebay.declaration.merge import FOLDER_TEXTS
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from tests.batch.by_spark.declared_columns import TOO_NEW, TOO_OLD, asked_of, of, with_declared_columns

VIOLATED, REFUSED = "_violated", "_refused"


def checked(rows: DataFrame, service: Service) -> DataFrame:
    """The rows with `_violated`, the names of all expectations that they violate, and `_checked_fate`: quarantine, drop, or
    null. `_refused` says why they cannot be in the table: a time outside its bounds, or a value that may not name a
    folder."""
    tables = {
        number: table
        for number, table in enumerate(service.tables)
        if table.expectations or table.partitions or table.event_time or table.merge
    }
    made = with_declared_columns(rows, service, tables, _is_of)
    names = {
        n: F.array_compact(F.array(*_violated_names(n, table))) for n, table in tables.items() if table.expectations
    }
    violated = _by_declaration({n: F.when(F.size(some) > 0, some) for n, some in names.items()}, "array<string>")
    refused = _by_declaration({n: _refusal(n, table) for n, table in tables.items()}, "string")
    judged = made.select(*rows.columns, violated.alias(VIOLATED), refused.alias(REFUSED))
    return judged.withColumn("_checked_fate", _fate(tables))


def _by_declaration(values: Mapping[int, Expression], kind: str) -> Expression:
    """The value that the row's declaration gives it; null where it gives none."""
    made = F.when(F.lit(False), F.lit(None).cast(kind))
    for number, value in values.items():
        made = made.when(_is_of(number), value)
    return made


def _is_of(number: int) -> Expression:
    return F.col("_declared") == number


def _refusal(number: int, table: Table) -> Expression:
    why = F.lit(None).cast("string")
    kinds = {column.name: column.type for column in table.columns}
    for name in table.partitions:
        pattern = table.partition_values.get(name, USUAL_VALUES if kinds[name] == "string" else None)
        if pattern is not None:
            dirty = ~of(number, name).cast("string").rlike(f"^(?:{pattern})\\z")
            why = F.when(dirty, BAD_PARTITION_VALUE).otherwise(why)
    if table.event_time is not None and table.event_time.outside == "quarantine":
        why = F.when(of(number, TOO_OLD), EVENT_TOO_OLD).when(of(number, TOO_NEW), EVENT_IN_THE_FUTURE).otherwise(why)
    if table.merge is not None:
        why = F.when(_any_null(number, table.merge.sequence_by), NO_SEQUENCE).otherwise(why)
        why = F.when(_any_null(number, table.merge.keys), NO_KEY).otherwise(why)
        for name in (one for one in table.merge.partitions if kinds[one] == "string"):
            no_folder = ~of(number, name).rlike(f"^(?:{FOLDER_TEXTS})\\z")
            why = F.when(of(number, name) == "", NO_KEY).when(no_folder, BAD_PARTITION_VALUE).otherwise(why)
    return why


def _any_null(number: int, names: Iterable[str]) -> Expression:
    return reduce(lambda a, b: a | b, (of(number, name).isNull() for name in names))


def _fate(tables: Mapping[int, Table]) -> Expression:
    """The fate of a row that violates something. The names are looked up: an expression for each table would repeat all
    that tables check as often as there are tables."""
    fate = F.when(F.col(REFUSED).isNotNull(), "quarantine")
    for outcome in ("quarantine", "drop"):
        names = {
            n: [x for x, e in table.expectations.items() if e.on_violation == outcome] for n, table in tables.items()
        }
        by_number = [part for n, some in names.items() if some for part in (F.lit(n), F.array(*map(F.lit, some)))]
        if by_number:
            fate = fate.when(F.arrays_overlap(VIOLATED, F.create_map(*by_number)[F.col("_declared")]), outcome)
    return fate


def _violated_names(number: int, table: Table) -> Iterator[Expression]:
    """A check that cannot be computed for a row does not hold; one that is null does."""
    for name, expectation in table.expectations.items():
        tried = asked_of(number, expectation.check, "boolean", _is_of(number))
        yield F.when(tried.isNull() | ~tried["value"], name)
