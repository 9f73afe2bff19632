"""Widens a column's type without rewriting the table: Delta's table feature `typeWidening`.

In: a table's schema, and that of rows whose types may be wider. Out: the table's schema with the wider types and what they
were before, as the protocol wants it in the columns' metadata; or None where nothing is wider. It is only for tables that
declare it: readers without the feature cannot read the table from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from forebay.declaration.column import widens
from forebay.table.schema import type_name

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

FEATURE = "typeWidening"
ENABLED = "delta.enableTypeWidening"
CHANGES = "delta.typeChanges"


def widened(table: StructType, rows: StructType, partition_columns: Sequence[str]) -> StructType | None:
    """Widens whole columns; partition values are text in the log, and keep their type."""
    from pyspark.sql.types import StructType

    wanted = {field.name: field.dataType for field in rows.fields if field.name not in partition_columns}
    fields = [_widened(field, wanted.get(field.name, field.dataType)) for field in table.fields]
    return None if fields == table.fields else StructType(fields)


def widenings(before: StructType, after: StructType) -> tuple[str, ...]:
    """The changes, as text for people."""
    both = [(old, new) for old, new in zip(before.fields, after.fields, strict=True) if old.dataType != new.dataType]
    return tuple(f"{old.name} {type_name(old.dataType)} -> {type_name(new.dataType)}" for old, new in both)


def _widened(field: StructField, wanted: DataType) -> StructField:
    from pyspark.sql.types import StructField

    if not widens(type_name(field.dataType), type_name(wanted)):
        return field
    change = {"fromType": field.dataType.jsonValue(), "toType": wanted.jsonValue()}
    metadata = {**field.metadata, CHANGES: [*field.metadata.get(CHANGES, []), change]}
    return StructField(field.name, wanted, field.nullable, metadata)
