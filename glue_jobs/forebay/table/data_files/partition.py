"""Partition values: Delta's notation for them, and the folder of a data file.

In: a table's partition columns with their types, and values as text. Out: a Spark column that names table and partition of a
row in one string, and folder names escaped as Hive and Spark escape them. Readers use the log's `partitionValues`; folders are
for people, and for keeping the files of a day together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

Values = tuple[tuple[str, str | None], ...]
"""Partition columns and their values, in the table's order; None is null, and so is the empty string."""

NULL = "__HIVE_DEFAULT_PARTITION__"
MOST_FOLDER_BYTES = 255
ESCAPED = frozenset({*map(chr, range(0x20)), *"\"#%'*/:=?\\{[]^", "\x7f"})


def destination_column(
    table: Column, partitions: Mapping[str, Sequence[str]], types: Mapping[str, DataType], zone: str
) -> Column:
    """Table and partition values of a row as one JSON array: it hashes, sorts and compares as a single string."""
    from pyspark.sql import functions as F

    by_columns: dict[tuple[str, ...], list[str]] = {}
    for name, columns in partitions.items():
        by_columns.setdefault(tuple(columns), []).append(name)
    keys = [(names, _key(table, columns, types, zone)) for columns, names in by_columns.items()]
    (_, key), *others = sorted(keys, key=lambda pair: -len(pair[0]))
    for names, other in others:
        key = F.when(table.isin(names), other).otherwise(key)
    return key


def _key(table: Column, columns: Sequence[str], types: Mapping[str, DataType], zone: str) -> Column:
    from pyspark.sql import functions as F

    return F.to_json(F.array(table, *(_as_text(name, types[name], zone) for name in columns)))


def _as_text(name: str, kind: DataType, zone: str) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.types import TimestampType

    column = F.col(quoted(name))
    if isinstance(kind, TimestampType):
        return F.date_format(F.to_utc_timestamp(column, zone), "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")
    return F.nullif(column.cast("string"), F.lit(""))


def quoted(name: str) -> str:
    """A column's name for Spark, in which a dot is a dot."""
    return f"`{name.replace('`', '``')}`"


def can_name_folders(kind: pa.DataType) -> bool:
    """Whether values of this type have the same text in Arrow as in Spark."""
    numbers = pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind)
    return bool(numbers or pa.types.is_string(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def may_partition(kind: DataType) -> bool:
    """Whether values of this type can be partition values: plain ones that have a text."""
    from pyspark.sql import types as T

    return not isinstance(kind, T.BinaryType | T.ArrayType | T.MapType | T.StructType | T.NullType)


def parse_destination(key: str, partitions: Mapping[str, Sequence[str]]) -> tuple[str, Values]:
    """The table and the partition values that `destination_column` wrote."""
    table, *values = json.loads(key)
    return table, tuple(zip(partitions[table], values, strict=True))


def by_partition(rows: pa.Table, columns: Sequence[str]) -> Iterator[tuple[Values, pa.Table]]:
    """The rows of each partition, in Arrow."""
    if not columns:
        yield (), rows
        return
    texts = [_texts(rows[name].combine_chunks()) for name in columns]
    texts = [pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text) for text in texts]
    keys = pa.table(texts, names=[str(n) for n in range(len(columns))])
    keys = keys.append_column("at", pa.array(range(rows.num_rows), pa.int64()))
    found = keys.group_by(keys.column_names[:-1], use_threads=False).aggregate([("at", "list")])
    for one in found.to_pylist():
        values = tuple((name, one[str(n)]) for n, name in enumerate(columns))
        yield values, rows if found.num_rows == 1 else rows.take(pa.array(one["at_list"], pa.int64()))


def _texts(values: pa.Array) -> pa.StringArray:
    """The texts, as `_as_text` makes Spark write them."""
    if pa.types.is_decimal(values.type):
        return pa.array([None if value is None else format(value, "f") for value in values.to_pylist()], pa.string())
    if pa.types.is_timestamp(values.type):
        return pc.replace_substring(values.cast(pa.timestamp("us", "UTC")).cast(pa.string()), " ", "T")
    return values.cast(pa.string())


def folder(values: Values) -> str:
    """`day=2026-01-31/zone=a%2Fb/`; nothing for a table without partitions."""
    return "".join(f"{_escaped(name)}={NULL if value is None else _escaped(value)}/" for name, value in values)


def can_be_folder(column: str, value: str) -> bool:
    """Whether its name is short enough for S3 and for disks: one that is not would fail the whole table."""
    return len(folder(((column, value),))[:-1].encode()) <= MOST_FOLDER_BYTES


def _escaped(text: str) -> str:
    return "".join(f"%{ord(c):02X}" if c in ESCAPED else c for c in text)


def uri_path(path: str) -> str:
    """A path inside the table's folder as an add action names it: the protocol asks for a URI, so % becomes %25."""
    return quote(path, safe="/=")
