"""The columns of a table's rows, as Spark expressions over the parsed record: what is declared, and what is forebay's own.

The fields that nobody declared are not looked at here: the record's text goes with its row (`DOCUMENT`), and becomes columns
where the row is written, because each table has other ones. A value that does not fit its declared column is null there and
goes along as text (`MISFITS`), to be rescued.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import reduce
from typing import TYPE_CHECKING, Any

from forebay.batch.routing import field
from forebay.column import Column
from forebay.record.growth import Rules
from forebay.service import Service, Table
from forebay.table.shaping import DOCUMENT, MISFITS, RESCUED

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression

__all__ = ["column_schema", "declared_column", "rules_of", "table_columns"]

OWN_COLUMNS = ("_file_id", "_line", "_batch", "_ingested_at")

SPARK_TYPES = {
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


def table_columns(service: Service, table: Table, *, batch: int, at: datetime) -> list[Expression]:
    """All columns that a row of this declaration gets from Spark, with what is needed for the rest."""
    from pyspark.sql import functions as F

    own = {"_batch": F.lit(batch).cast("long"), "_ingested_at": F.lit(at)}
    columns = [declared_column(service, column).alias(column.name) for column in table.columns]
    columns += [own.get(name, F.col(name)).alias(name) for name in OWN_COLUMNS]
    if table.keep_record:
        columns.append(F.rtrim("value").alias("_record"))
    return [*columns, F.col("value").alias(DOCUMENT), _misfits(service, table.columns).alias(MISFITS)]


def rules_of(table: Table) -> Rules:
    """How a record's other fields become columns."""
    undeclared = table.undeclared
    tree: dict[str, Any] = {}
    for path in sorted(column.source for column in table.columns):
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
    from pyspark.sql import functions as F

    text = field(service, column.source)
    if column.type in ("string", "json"):
        return text
    if column.type == "map":
        return F.from_json(text, "map<string,string>")
    if column.type in ("timestamp", "date"):
        moment = _moment(text, column)
        return moment if column.type == "timestamp" else moment.cast("date")
    return text.try_cast(SPARK_TYPES.get(column.type, column.type))


def column_schema(columns: Iterable[Column]) -> str:
    """The declared columns as DDL."""
    other = {"string": "STRING", "json": "STRING", "map": "MAP<STRING,STRING>"}
    return ", ".join(f"`{c.name}` {other.get(c.type) or SPARK_TYPES.get(c.type, c.type)}" for c in columns)


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


def _misfits(service: Service, columns: Iterable[Column]) -> Expression:
    """What did not fit, as JSON of text by path; null where everything did."""
    from pyspark.sql import functions as F

    spoiled = []
    for column in columns:
        if column.type not in ("string", "json"):
            text = field(service, column.source)
            misfit = text.isNotNull() & declared_column(service, column).isNull()
            spoiled.append((column.source, text, misfit))
    if not spoiled:
        return F.lit(None).cast("string")
    pairs = [part for path, text, misfit in spoiled for part in (F.lit(path), F.when(misfit, text))]
    by_path = F.map_filter(F.create_map(*pairs), lambda path, text: text.isNotNull())
    return F.when(reduce(lambda a, b: a | b, (misfit for *_, misfit in spoiled)), F.to_json(by_path))


def _plant(tree: dict[str, Any], parts: list[str]) -> None:
    """Adds a path; where an object is declared whole, its fields are in it already."""
    for at, part in enumerate(parts):
        if tree.get(part) == {}:
            return
        tree = tree.setdefault(part, {})
        if at == len(parts) - 1:
            tree.clear()
