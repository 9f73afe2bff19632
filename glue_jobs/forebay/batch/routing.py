"""Which record belongs to which table: the declarations, made into one Spark expression over one parse.

In: the rows of `forebay.content`. Out: the same rows with `_fate`, `_table`, `_declared` (which of the service's
declarations made the table), `_reason`, and the fields that declared columns are read from. A record is parsed once;
every leaf comes as text, so that a wrong type is seen here and not in the parser.

Fates: `write` (to `_table`), `quarantine` (with `_reason`), `park`, and `end` for a piece's end. What the rows violate makes
`drop` of some, and `quarantine` of others (`settled`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING

from forebay.batch.reasons import BAD_TABLE_NAME, EXPECTATION, NOT_JSON, SEVERAL_DOCUMENTS
from forebay.batch.record_fields import PROBLEM, read_fields
from forebay.content.rows import IS_DOCUMENT, IS_END
from forebay.declaration import object_key, object_metadata
from forebay.declaration.column import of_the_file
from forebay.declaration.service import Service
from forebay.declaration.table import RESERVED, Table

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

__all__ = ["field", "fields_of", "metadata_is_asked_for", "parsed", "routed", "settled"]

_NO_FOLDER_OF_OURS = rf"^(?!(?:{'|'.join(sorted(RESERVED))})\z)[^_.]"
"""However wide a declared pattern is: folders that begin so are hidden to Delta, or forebay's own."""

_DIRTY = "\x00"
"""Marks a table name that was made of a value that may not name a table; no value that matches a pattern holds it."""


def routed(content: DataFrame, service: Service) -> DataFrame:
    """The rows, each with its fate."""
    from pyspark.sql import functions as F

    rows = parsed(content, F.when(F.expr(IS_DOCUMENT), F.col("value")), service)
    unreadable = F.col(f"_parsed.`{PROBLEM}`")
    rows = rows.withColumn("_route", F.when(F.expr(IS_DOCUMENT) & unreadable.isNull(), _route(service)))
    rows = rows.withColumn("_table", F.col("_route.name")).withColumn("_declared", F.col("_route.declared"))
    dirty = F.col("_table").contains(_DIRTY)
    reason = (
        F.when(F.col("line").isNull(), None)
        .when(F.col("problem").isNotNull(), F.col("problem"))
        .when(unreadable == SEVERAL_DOCUMENTS, SEVERAL_DOCUMENTS)
        .when(unreadable.isNotNull(), NOT_JSON)
        .when(dirty, BAD_TABLE_NAME)
    )
    rows = rows.withColumn("_reason", reason)
    fate = (
        F.when(F.expr(IS_END), "end")
        .when(F.col("_reason").isNotNull(), "quarantine")
        .when(F.col("_table").isNull(), "park")
        .otherwise("write")
    )
    rows = rows.withColumn("_fate", fate).withColumn("_table", F.when(F.col("_fate") == "write", F.col("_table")))
    return rows.drop("_route")


def parsed(rows: DataFrame, text: Expression, service: Service) -> DataFrame:
    """The rows with `_parsed`, the fields that the declarations name."""
    return rows.withColumn("_parsed", read_fields(text, sorted(fields_of(service))))


def settled(rows: DataFrame) -> DataFrame:
    """The checked rows with the fates that the checks give them; the table that they were meant for stays with them."""
    from pyspark.sql import functions as F

    changed = F.when(F.col("_fate") == "write", F.col("_checked_fate"))
    rows = rows.withColumn("_changed", changed)
    set_aside = F.col("_changed") == "quarantine"
    reason = F.when(set_aside, F.coalesce("_refused", F.lit(EXPECTATION))).otherwise(F.col("_reason"))
    detail = F.when(set_aside, F.array_join("_violated", ", ")).otherwise(F.col("detail"))
    rows = rows.withColumn("_reason", reason).withColumn("detail", detail)
    return rows.withColumn("_fate", F.coalesce("_changed", "_fate")).drop("_changed", "_refused", "_checked_fate")


def fields_of(service: Service) -> set[str]:
    """Every field of a record that the declarations name."""
    return {path for path in _named(service) if not of_the_file(path)}


def metadata_is_asked_for(service: Service) -> bool:
    """Whether the declarations name anything of the objects' metadata."""
    return any(path.startswith(object_metadata.PREFIX) for path in _named(service))


def _named(service: Service) -> set[str]:
    named: set[str] = set()
    for table in service.tables:
        named |= {*table.fields, *table.where, *(c.source for c in table.columns if c.expression is None)}
    return named


def field(service: Service, path: str) -> Expression:
    """A field of the parsed record, as text; an object or an array as JSON. One of the file comes from the rows' `key`
    or `metadata`."""
    from pyspark.sql import functions as F

    if path.startswith(object_key.PREFIX):
        template = service.envelope.key
        group = object_key.names(template).index(path.removeprefix(object_key.PREFIX)) + 1
        return F.nullif(F.regexp_extract("key", object_key.pattern(template), group), F.lit(""))
    if path.startswith(object_metadata.PREFIX):
        name = path.removeprefix(object_metadata.PREFIX)
        return F.nullif(F.get_json_object("metadata", f"$['{name}']"), F.lit(""))

    return F.col(f"_parsed.`{path}`")


def _route(service: Service) -> Expression:
    """The first declaration that wants the record, and the table's name that it gives."""
    from pyspark.sql import functions as F

    names = ((n, _name_by(service, table)) for n, table in enumerate(service.tables))
    return F.coalesce(
        *(F.when(name.isNotNull(), F.struct(F.lit(n).alias("declared"), name.alias("name"))) for n, name in names)
    )


def _name_by(service: Service, table: Table) -> Expression:
    """The name that this declaration gives the record; null where it does not want it."""
    from pyspark.sql import functions as F

    if not table.fields:
        made: Expression = F.lit(table.name)
        wanted: Expression = F.lit(True)
    else:
        fits = reduce(lambda a, b: a & b, (field(service, f).rlike(f"^(?:{table.values})\\z") for f in table.fields))
        name = F.concat(*_parts(service, table))
        made = F.when(fits & name.rlike(_NO_FOLDER_OF_OURS), name).otherwise(F.lit(_DIRTY))
        wanted = reduce(lambda a, b: a & b, (field(service, f).isNotNull() for f in table.fields))
    for path, value in table.where.items():
        wanted = wanted & F.coalesce(field(service, path) == value, F.lit(False))
    return F.when(wanted, made)


def _parts(service: Service, table: Table) -> Iterable[Expression]:
    from pyspark.sql import functions as F

    for text, name in re.findall(r"([^{}]+)|\{([^{}]*)\}", table.name):
        yield F.lit(text) if text else field(service, name)
