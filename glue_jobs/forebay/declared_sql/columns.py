"""The columns of a table in Spark's words: forebay's own, the types of declared ones, times that Spark reads by `formats`, and
the rules by which undeclared fields become columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from forebay.declaration.column import Column
from forebay.declaration.column_type import is_nested, renamed_leaves
from forebay.declaration.form import EXPLODED, PARENT
from forebay.declaration.path import parse_path
from forebay.declaration.table import Table
from forebay.declared_sql.attempt import tried, within_years
from forebay.record.growth import Rules
from forebay.remembered import remembered_of
from forebay.table.shaping import RESCUED

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression

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


@remembered_of
def rules_of(table: Table) -> Rules:
    """The rules by which a record's other fields become columns. A thousand tables may have one declaration."""
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


def spark_type(column: Column) -> str:
    if is_nested(column.type):
        return renamed_leaves(column.type, lambda kind: SPARK_TYPES.get(kind, kind).lower())
    return SPARK_TYPES.get(column.type, column.type)


def time_by_formats(text: Expression, column: Column) -> Expression:
    """The time or the date of a text by the column's `formats`; null where it is of none of them. `yyyy` takes more digits
    after a plus, and a year that no time of Spark reaches is an error to it."""
    from pyspark.sql import functions as F

    kind = spark_type(column)
    made = F.coalesce(*(tried(F.try_to_timestamp(text, F.lit(pattern))) for pattern in column.formats)).cast(kind)
    return F.when(within_years(made, kind), made)


def _plant(tree: dict[str, Any], parts: Sequence[str]) -> None:
    """Adds a path; where an object is declared whole, its fields are in it already."""
    for at, part in enumerate(parts):
        if tree.get(part) == {}:
            return
        tree = tree.setdefault(part, {})
        if at == len(parts) - 1:
            tree.clear()
