"""Which record belongs to which table: the declarations, made into one Spark expression.

In: the rows of `forebay.content`. Out: the same rows with `_fate`, `_table`, `_declared` (which of the service's declarations
made the table, or owns its name before that one), `_reason`, and what is read of the record (`records`).

Fates: `write` (to `_table`), `quarantine` (with `_reason`), `park`, and `end` for a piece's end. `drop` is a record of an
erased person, or an element of an exploded array that no table wants: its record has it. A violated expectation makes `drop` of
some, and `quarantine` of others (`with_final_fates`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from forebay.batch.reasons import BAD_TABLE_NAME, EXPECTATION
from forebay.content.outcome import ERASED
from forebay.declaration.condition import NUMBER, Condition
from forebay.declaration.form import EXPLODED, ORDINAL
from forebay.declaration.mistakes.common_name import Pattern, common_name
from forebay.declaration.service import Service
from forebay.declaration.table import RESERVED
from forebay.privacy.together import NOT_KEPT
from tests.batch.by_spark.declared_columns import asked_of, with_declared_columns
from tests.batch.by_spark.records import PROBLEM, field, read

_NO_FOLDER_OF_OURS = rf"^(?!(?:{'|'.join(sorted(RESERVED))})\z)[^_.]"
"""However wide a declared pattern is: folders that begin so are hidden to Delta, or forebay's own."""

_DIRTY = "\x00"
"""Marks a table name that was made of a value that may not name a table; no value that matches a pattern holds it."""


def routed(content: DataFrame, service: Service) -> DataFrame:
    """The rows, each with its fate."""
    rows = read(content, service)
    unreadable = F.col(PROBLEM)
    rows = rows.withColumn("_record", F.col("problem").isNull() & F.col("line").isNotNull() & unreadable.isNull())
    if service.personal:
        # Its personal fields cannot be recognised, and without a quote around a key nobody looked for them.
        rows = rows.withColumn("value", F.when(unreadable.isNotNull(), F.lit(NOT_KEPT)).otherwise(F.col("value")))
    rows = _with_wishes(rows, service)
    rows = rows.withColumn("_route", F.when(F.col("_record"), _route(service)))
    rows = rows.withColumn("_table", F.col("_route.name")).withColumn("_declared", F.col("_route.declared"))
    dirty = F.col("_table").contains(_DIRTY)
    reason = (
        F.when(F.col("line").isNull(), None)
        .when(F.col("problem").isNotNull(), F.col("problem"))
        .when(unreadable.isNotNull(), unreadable)
        .when(dirty, BAD_TABLE_NAME)
    )
    rows = rows.withColumn("_reason", reason)
    fate = (
        F.when(F.col("line").isNull(), "end")
        .when(F.col("problem") == ERASED, "drop")
        .when(F.col("_reason").isNotNull(), "quarantine")
        .when(F.col("_table").isNull() & _is_element(service, *service.exploded), "drop")
        .when(F.col("_table").isNull(), "park")
        .otherwise("write")
    )
    rows = rows.withColumn("_fate", fate).withColumn("_table", F.when(F.col("_fate") == "write", F.col("_table")))
    return rows.drop("_record", "_route", *(_wish(number) for number in range(len(service.tables))))


def with_final_fates(rows: DataFrame) -> DataFrame:
    """The checked rows with the fates that the checks give them; the table that they were meant for stays with them."""
    meant = F.col("_fate") == "write"
    rows = rows.withColumn("_changed", F.when(meant, F.col("_checked_fate")))
    rows = rows.withColumn("_violated", F.when(meant, F.col("_violated")))
    held = F.col("_changed") == "quarantine"
    reason = F.when(held, F.coalesce("_refused", F.lit(EXPECTATION))).otherwise(F.col("_reason"))
    detail = F.when(held, F.array_join("_violated", ", ")).otherwise(F.col("detail"))
    rows = rows.withColumn("_reason", reason).withColumn("detail", detail)
    return rows.withColumn("_fate", F.coalesce("_changed", "_fate")).drop("_changed", "_refused", "_checked_fate")


def _with_wishes(rows: DataFrame, service: Service) -> DataFrame:
    """The rows with whether each declaration's SQL holds; a null does not, nor does an error."""
    asked = {number: table for number, table in enumerate(service.tables) if table.where_sql is not None}
    if not asked:
        return rows
    made = with_declared_columns(rows, service, asked, lambda _: F.col("_record"))
    said = {n: asked_of(n, str(table.where_sql), "boolean", F.col("_record"))["value"] for n, table in asked.items()}
    return made.select(*rows.columns, *(F.coalesce(s, F.lit(False)).alias(_wish(n)) for n, s in said.items()))


def _wish(number: int) -> str:
    return f"_wish_{number}"


def _is_element(service: Service, *arrays: str) -> Expression:
    """Whether the record lay in an array that was exploded: in one of these, or in any; never null."""
    if not service.exploded:
        return F.lit(False)
    array = field(EXPLODED)
    known = array.isin(*arrays) if arrays else array.isNotNull()
    return F.coalesce(known & field(ORDINAL).isNotNull(), F.lit(False))


def _route(service: Service) -> Expression:
    """The first declaration that wants the record, and the table's name that it gives."""
    names = ((n, _name_by(service, n)) for n in range(len(service.tables)))
    return F.coalesce(
        *(
            F.when(name.isNotNull(), F.struct(_owner(service, n, name).alias("declared"), name.alias("name")))
            for n, name in names
        )
    )


def _owner(service: Service, number: int, name: Expression) -> Expression:
    """`Service.owner_of` a name that this declaration gives."""
    mine = service.tables[number].names
    before = service.owners[: service.owners.index(number)]
    others = {n: names for n in before if _may_share(mine, names := service.tables[n].names)}
    owners = (F.when(name.rlike(rf"^(?:{names.regular_expression})\z"), F.lit(n)) for n, names in others.items())
    return F.coalesce(*owners, F.lit(number))


def _may_share(one: Pattern, other: Pattern) -> bool:
    return not (one.is_exact and other.is_exact) or common_name(one, other) is not None


def _name_by(service: Service, number: int) -> Expression:
    """The name that this declaration gives the record; null where it does not want it."""
    table = service.tables[number]
    if not table.fields:
        made: Expression = F.lit(table.name)
        wanted: Expression = F.lit(True)
    else:
        fits = reduce(lambda a, b: a & b, (field(f).rlike(f"^(?:{table.values})\\z") for f in table.fields))
        name = F.concat(*_parts(service, table.name))
        names = [name] if table.merge is None else [name, F.concat(*_parts(service, table.merge.into))]
        free = reduce(lambda a, b: a & b, (one.rlike(_NO_FOLDER_OF_OURS) for one in names))
        made = F.when(fits & free, name).otherwise(F.lit(_DIRTY))
        wanted = reduce(lambda a, b: a & b, (field(f).isNotNull() for f in table.fields))
    if table.explode is not None:
        wanted = wanted & _is_element(service, table.explode)
    elif service.exploded:
        wanted = wanted & ~_is_element(service)
    for path, condition in table.where.items():
        wanted = wanted & _holds(field(path), condition)
    if table.where_sql is not None:
        wanted = wanted & F.col(_wish(number))
    return F.when(wanted, made)


def _holds(text: Expression, condition: Condition) -> Expression:
    """`Condition.holds`, for Spark; never null."""
    tests = []
    if condition.exists is not None:
        tests.append(text.isNotNull() if condition.exists else text.isNull())
    if condition.one_of:
        tests.append(F.coalesce(text.isin(*condition.one_of), F.lit(False)))
    if condition.none_of:
        tests.append(F.coalesce(~text.isin(*condition.none_of), F.lit(True)))
    if condition.prefix is not None:
        tests.append(F.coalesce(F.startswith(text, F.lit(condition.prefix)), F.lit(False)))
    if condition.matches is not None:
        tests.append(F.coalesce(text.rlike(f"^(?:{condition.matches})\\z"), F.lit(False)))
    number = F.when(text.rlike(f"^{NUMBER}\\z"), text.try_cast("double"))
    for name, limit in condition.bounds.items():
        compared = {"above": number > limit, "at_least": number >= limit, "below": number < limit}
        tests.append(F.coalesce(compared.get(name, number <= limit), F.lit(False)))
    return reduce(lambda a, b: a & b, tests)


def _parts(service: Service, pattern: str) -> Iterable[Expression]:
    for text, name in re.findall(r"([^{}]+)|\{([^{}]*)\}", pattern):
        yield F.lit(text) if text else field(name)
