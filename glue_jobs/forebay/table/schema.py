"""Decides whether rows fit a table, before a file is written: a data file whose types differ from the table's corrupts it.

In: two Spark schemas, and the table's partition columns where a new table is meant. Out: the columns that must be added first,
or every reason why the rows do not fit, as `Problem`s. Types are compared exactly; the caller casts before. A column that the
rows lack is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from forebay.errors import Problem
from forebay.table.data_files.partition import may_partition

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType


def nullable(schema: StructType) -> StructType:
    """The same columns, all nullable, down to the innermost: Delta does the same with a DataFrame's schema."""
    from pyspark.sql.types import StructType

    made = _nullable(schema)
    assert isinstance(made, StructType)
    return made


def _nullable(kind: DataType) -> DataType:
    from pyspark.sql import types as T

    if isinstance(kind, T.StructType):
        return T.StructType([T.StructField(f.name, _nullable(f.dataType), True, f.metadata) for f in kind.fields])
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_nullable(kind.elementType), True)
    if isinstance(kind, T.MapType):
        return T.MapType(_nullable(kind.keyType), _nullable(kind.valueType), True)
    return kind


def unwritable(rows: StructType, partition_columns: Sequence[str]) -> Iterator[Problem]:
    """Columns that no table of ours can take: types beyond reader version 1, and impossible partition columns."""
    for path, kind in _atoms("", rows):
        if kind.typeName() not in (*PLAIN, *NUMBERS):
            yield Problem(
                f"column {path}", f"{kind.simpleString()} is not a type that every Delta reader knows", "cast it"
            )
    kinds = {f.name: f.dataType for f in rows.fields}
    for name in partition_columns:
        if name not in kinds:
            yield Problem(f"partition column {name}", "is not among the rows' columns")
        elif not may_partition(kinds[name]):
            yield Problem(
                f"partition column {name}", f"{kinds[name].simpleString()} cannot name a folder", "derive one"
            )
    if len(partition_columns) == len(kinds):
        yield Problem("partition columns", "leave no column for the data files")


PLAIN = ("string", "boolean", "binary", "date", "timestamp", "varchar", "char")
NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")


def _atoms(path: str, kind: DataType) -> Iterator[tuple[str, DataType]]:
    from pyspark.sql import types as T

    if isinstance(kind, T.StructType) and kind.fields:
        for field in kind.fields:
            yield from _atoms(f"{path}.{field.name}".lstrip("."), field.dataType)
    elif isinstance(kind, T.ArrayType):
        yield from _atoms(f"{path}[]", kind.elementType)
    elif isinstance(kind, T.MapType):
        yield from _atoms(f"{path} (key)", kind.keyType)
        yield from _atoms(f"{path} (value)", kind.valueType)
    else:
        yield path, kind


def new_columns(rows: StructType, table: StructType) -> tuple[str, ...]:
    """The columns and nested fields of the rows that the table lacks, as dotted paths."""
    return tuple(_new_fields("", rows, table))


def _new_fields(path: str, rows: DataType, table: DataType) -> Iterator[str]:
    from pyspark.sql import types as T

    if isinstance(rows, T.StructType) and isinstance(table, T.StructType):
        known = _by_lower_name(table)
        for field in rows.fields:
            if (there := known.get(field.name.lower())) is None:
                yield f"{path}{field.name}"
            else:
                yield from _new_fields(f"{path}{field.name}.", field.dataType, there.dataType)
    else:
        for mine, theirs in _inner(rows, table):
            yield from _new_fields(path, mine, theirs)


def merged(table: StructType, rows: StructType) -> StructType:
    """The table's columns, with those of the rows that it lacks, down to the innermost."""
    from pyspark.sql.types import StructType

    made = _merged(table, nullable(rows))
    assert isinstance(made, StructType)
    return made


def _merged(table: DataType, rows: DataType) -> DataType:
    from pyspark.sql import types as T

    if isinstance(rows, T.StructType) and isinstance(table, T.StructType):
        new, known = _by_lower_name(rows), _by_lower_name(table)
        kept = [
            T.StructField(f.name, _merged(f.dataType, new[name].dataType), f.nullable, f.metadata) if name in new else f
            for name, f in known.items()
        ]
        return T.StructType([*kept, *(f for name, f in new.items() if name not in known)])
    if isinstance(rows, T.ArrayType) and isinstance(table, T.ArrayType):
        return T.ArrayType(_merged(table.elementType, rows.elementType), table.containsNull)
    if isinstance(rows, T.MapType) and isinstance(table, T.MapType):
        value = _merged(table.valueType, rows.valueType)
        return T.MapType(_merged(table.keyType, rows.keyType), value, table.valueContainsNull)
    return table


def misfits(rows: StructType, table: StructType) -> Iterator[Problem]:
    """Why the rows cannot be appended to this table. A column that only one of them has is not a reason, save NOT NULL."""
    yield from _struct_misfits("", rows, table)


def _struct_misfits(path: str, rows: StructType, table: StructType) -> Iterator[Problem]:
    known = _by_lower_name(table)
    ours = _by_lower_name(rows)
    for field in rows.fields:
        where = f"column {path}{field.name}"
        there = known.get(field.name.lower())
        if there is None:
            continue
        if there.name != field.name:
            yield Problem(where, f"is called {there.name} in the table", "many readers are case-sensitive")
        if field.nullable and not there.nullable:
            yield Problem(where, "may not be null in the table", "fill it, and declare it so in the rows' schema")
        yield from _type_misfits(f"{path}{field.name}", field.dataType, there.dataType)
    for field in table.fields:
        if not field.nullable and field.name.lower() not in ours:
            yield Problem(f"column {path}{field.name}", "may not be null in the table, and the rows lack it")


def _type_misfits(path: str, rows: DataType, table: DataType) -> Iterator[Problem]:
    from pyspark.sql import types as T

    if isinstance(rows, T.StructType) and isinstance(table, T.StructType):
        yield from _struct_misfits(f"{path}.", rows, table)
    elif inner := _inner(rows, table):
        for mine, theirs in inner:
            yield from _type_misfits(f"{path}[]", mine, theirs)
    elif rows != table:
        what = f"is {type_name(table)} in the table and {type_name(rows)} in the rows"
        yield Problem(f"column {path}", what, "declare the type of the table, or run `forebay schema settle`")


def type_name(kind: DataType) -> str:
    """As in a declaration."""
    return kind.simpleString().replace("bigint", "long")


def _inner(rows: Any, table: Any) -> list[tuple[DataType, DataType]]:
    """The element types of two arrays or two maps, side by side."""
    from pyspark.sql import types as T

    if isinstance(rows, T.ArrayType) and isinstance(table, T.ArrayType):
        return [(rows.elementType, table.elementType)]
    if isinstance(rows, T.MapType) and isinstance(table, T.MapType):
        return [(rows.keyType, table.keyType), (rows.valueType, table.valueType)]
    return []


def _by_lower_name(schema: StructType) -> dict[str, StructField]:
    return {field.name.lower(): field for field in schema.fields}


def has_map(kind: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, ArrayType):
        return has_map(kind.elementType)
    if isinstance(kind, StructType):
        return any(has_map(field.dataType) for field in kind.fields)
    return isinstance(kind, MapType)
