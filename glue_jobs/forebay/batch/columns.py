"""The columns of a table's rows, as Spark expressions over the parsed record: the declared ones, and forebay's own.

Undeclared fields are not read here. The record's text travels with its row (`DOCUMENT`) and becomes columns where the row is
written, because each table has its own. A value that does not fit its declared column is null there and goes along as text
(`MISFITS`), to be rescued.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from forebay.batch.attempt import tried, within_years
from forebay.batch.fields import field
from forebay.batch.record_fields import (
    HALVES,
    day_of,
    decimal_of,
    is_exact,
    members_of,
    moment_of,
    moment_since_1970,
    plan_of,
    written_fields,
)
from forebay.declaration.column import Column
from forebay.declaration.form import EXPLODED, PARENT
from forebay.declaration.path import parse_path
from forebay.declaration.service import Service
from forebay.declaration.table import Table
from forebay.record.growth import Rules
from forebay.record.moment import PLACES
from forebay.table.shaping import RESCUED

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression

__all__ = [
    "OWN_COLUMNS",
    "column_of_text",
    "declared_column",
    "declared_misfits",
    "rules_of",
    "spark_type",
    "with_failed",
]

NO_TEXT = f"_parsed.`{HALVES}`"

OWN_COLUMNS = ("_file_id", "_line", "_batch", "_ingested_at")

JAVA_LITERAL = r"[0-9.][dDfF][\x00-\x20]*$|[xX]"

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


def with_failed(misfits: Expression, failed: Expression) -> Expression:
    """The values that did not fit, and null for each column that could not be computed."""
    from pyspark.sql import functions as F

    return _with_elements(misfits, F.transform(failed, lambda name: F.concat(F.lit('{"'), name, F.lit('":null}'))))


def _with_elements(array: Expression, more: Expression) -> Expression:
    """A JSON array, or null, with these elements before its own; null without any."""
    from pyspark.sql import functions as F

    rest = F.coalesce(F.concat(F.lit(","), F.substr(array, F.lit(2))), F.lit("]"))
    return F.when(F.size(more) > 0, F.concat(F.lit("["), F.concat_ws(",", more), rest)).otherwise(array)


def rules_of(table: Table) -> Rules:
    """How a record's other fields become columns."""
    undeclared, of_state = table.undeclared, table.merge.own_columns if table.merge else ()
    tree: dict[str, Any] = {}
    paths = [parse_path(column.source) for column in table.columns if column.of_record]
    if table.explode is not None:
        _plant(tree, (EXPLODED,))
        _plant(tree, (PARENT,))
    # An array whose element is read stays whole beside it: without the element, the others would move up.
    for keys in sorted(path.keys for path in paths if not path.has_position):
        _plant(tree, keys)
    return Rules(
        depth=undeclared.depth,
        flatten=undeclared.flatten,
        new_columns=undeclared.new_columns,
        columns=undeclared.max_columns,
        keys=undeclared.keys,
        undeclared={"columns": "columns", "rescued": "rescue", "ignored": "ignore"}[undeclared.become],
        declared=tree,
        reserved=frozenset({*(c.name.lower() for c in table.columns), *OWN_COLUMNS, RESCUED, "_record", *of_state}),
    )


def declared_column(service: Service, column: Column) -> Expression:
    """The column's value; null where the record has none that fits."""
    return column_of_text(field(service, column.source), column)


def column_of_text(text: Expression, column: Column) -> Expression:
    """The value that this text is in the column; null where it is none."""
    if column.type in ("string", "json"):
        return text
    if column.type == "map":
        return members_of(text)
    if column.type.startswith("decimal"):
        return decimal_of(text, column.type)
    if column.type in ("timestamp", "date"):
        return _moment(text, column)
    if column.type in ("double", "float"):
        return _finite(text, column.type)
    return text.try_cast(SPARK_TYPES.get(column.type, column.type))


def _finite(text: Expression, kind: str) -> Expression:
    """The nearest double or float. A number beyond them all has none; a text that says infinity is infinite. Spark takes `7d`
    for 7, and hexadecimal digits, as Java does in its source code: here these are not numbers."""
    from pyspark.sql import functions as F

    value = F.when(~text.rlike(JAVA_LITERAL), text.try_cast(SPARK_TYPES[kind]))
    return F.when((F.abs(value) != F.lit(math.inf)) | is_exact(text, single=kind == "float"), value)


def spark_type(column: Column) -> str:
    return SPARK_TYPES.get(column.type, column.type)


def _moment(text: Expression, column: Column) -> Expression:
    """A time or a date: by the declared formats, or ISO 8601 and a number of the declared unit."""
    from pyspark.sql import functions as F

    kind = spark_type(column)
    if column.formats:
        # `yyyy` takes more digits after a plus, and the years that no time of Spark reaches are an error to it.
        made = F.coalesce(*(tried(F.try_to_timestamp(text, F.lit(pattern))) for pattern in column.formats)).cast(kind)
        return F.when(within_years(made, kind), made)
    written = day_of(text) if column.type == "date" else moment_of(text)
    if column.unit is None:
        return written
    return F.coalesce(moment_since_1970(text, PLACES[column.unit]).cast(kind), written)


def declared_misfits(
    service: Service,
    table: Table,
    record: str = "value",
    known: Mapping[str, tuple[Expression, Expression]] | None = None,
) -> Expression:
    """The values that did not fit, as a JSON array of objects with one field each, as the column `record` has it; null
    where all did. `known` are texts and values of columns, by name, that come from elsewhere than the record. An element of
    an array is kept with its array; the whole array is kept where no part of it was."""
    from pyspark.sql import functions as F

    of_record, others = [], []
    ignored = table.undeclared.become == "ignored"
    for column in table.columns:
        path = parse_path(column.source)
        if path.has_position and not ignored:
            continue
        if column.of_record and column.name in (known or {}):
            text, value = (known or {})[column.name]
            others.append(F.when(_is_misfit(column, text, value), _as_json(column, text)))
        elif column.of_record:
            text = field(service, column.source)
            odd = _is_misfit(column, text, declared_column(service, column)) | (text.isNull() & F.col(NO_TEXT))
            of_record.append((odd, plan_of(path.keys)))
    spoiled = F.lit(None).cast("string")
    if of_record:
        which = F.concat_ws(",", *(F.when(odd, plan) for odd, plan in of_record))
        written = written_fields(F.col(record), F.concat(F.lit("["), which, F.lit("]")))
        spoiled = F.nullif(F.when(reduce(lambda a, b: a | b, (odd for odd, _ in of_record)), written), F.lit("[]"))
    return _with_elements(spoiled, F.array_compact(F.array(*others))) if others else spoiled


def _is_misfit(column: Column, text: Expression, value: Expression) -> Expression:
    """Whether a text that is there says more than its value."""
    from pyspark.sql import functions as F

    if column.type in ("string", "json"):
        return F.lit(False)
    odd = value.isNull()
    if column.type in ("double", "float"):
        odd = odd | ~is_exact(text, single=column.type == "float")
    return text.isNotNull() & odd


def _as_json(column: Column, text: Expression) -> Expression:
    """An object with the text where the column is read from."""
    from pyspark.sql import functions as F

    steps = parse_path(column.source).steps
    before = "".join("[" + "null," * step if isinstance(step, int) else f"{{{json.dumps(step)}:" for step in steps)
    after = "".join("]" if isinstance(step, int) else "}" for step in reversed(steps))
    quoted = F.regexp_extract(F.to_json(F.struct(text.alias("v"))), "^.{5}(.*)}$", 1)
    return F.concat(F.lit(before), quoted, F.lit(after))


def _plant(tree: dict[str, Any], parts: Sequence[str]) -> None:
    """Adds a path; where an object is declared whole, its fields are in it already."""
    for at, part in enumerate(parts):
        if tree.get(part) == {}:
            return
        tree = tree.setdefault(part, {})
        if at == len(parts) - 1:
            tree.clear()
