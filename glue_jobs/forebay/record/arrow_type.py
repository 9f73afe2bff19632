"""The Arrow types of declared columns, as Delta's readers expect them: the elements of an array are named `element`."""

from __future__ import annotations

import pyarrow as pa

from forebay.declaration.column import Column
from forebay.declaration.column_type import ArrayOf, ColumnType, StructOf, parts_of

TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "json": pa.string(),
    "map": pa.map_(pa.string(), pa.string()),
    "binary": pa.binary(),
    "long": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "float": pa.float32(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


def arrow_type_of(column: Column) -> pa.DataType:
    return _type_of(parts_of(column.type))


def _type_of(kind: ColumnType) -> pa.DataType:
    if isinstance(kind, ArrayOf):
        return pa.list_(pa.field("element", _type_of(kind.of)))
    if isinstance(kind, StructOf):
        return pa.struct([(name, _type_of(of)) for name, of in kind.fields.items()])
    if kind.startswith("decimal"):
        precision, scale = map(int, kind.removeprefix("decimal(").removesuffix(")").split(","))
        return pa.decimal128(precision, scale)
    return TYPES[kind]
