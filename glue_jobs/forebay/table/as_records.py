"""Turns rows of a table back into their records, as far as the table has them, so that they can become rows again.

In: all columns of a table, those that came from records by name, and `_rescued`. Out: the other columns, and `DOCUMENT`: each
row's values and what was rescued of it, as one JSON text. Keys are the columns' names, which are names of their own; nulls,
and what was empty before it had a column, are gone. A record that was rescued whole is that text. If asked, also `MISFITS`:
the rescued values of declared columns, which stay rescued whatever columns the record gets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from forebay.declaration.column_name import safe_name, taken_key
from forebay.record.number import Written, is_exact, problem_of, read_json, write_json
from forebay.record.walk import rescued_whole, text_of
from forebay.table.data_files.in_arrow import map_in_arrow
from forebay.table.shaping import DOCUMENT, MISFITS, RESCUED, nested

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def as_records(rows: DataFrame, from_records: Sequence[str], declared: Mapping[str, Any] | None = None) -> DataFrame:
    """`from_records` names the columns that records filled. With the `declared` fields (`Rules.declared`), the
    misfits have a column of their own."""
    from pyspark.sql.types import StringType, StructField, StructType

    taken = {*from_records, RESCUED}
    kept = [field for field in rows.schema.fields if field.name not in taken]
    texts = [DOCUMENT] if declared is None else [DOCUMENT, MISFITS]
    answer = StructType([*kept, *(StructField(name, StringType()) for name in texts)])
    return map_in_arrow(rows, AsRecords(tuple(from_records), declared), answer)


@dataclass(frozen=True)
class AsRecords:
    """The rows of one task."""

    from_records: tuple[str, ...]
    declared: Mapping[str, Any] | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = [_values(batch.column(name)) for name in self.from_records]
            has_digits = any(_has_decimals(batch.schema.field(name).type) for name in self.from_records)
            rescued = batch.column(RESCUED).to_pylist() if RESCUED in batch.schema.names else [None] * batch.num_rows
            texts = [
                _whole(row, left)
                or _text(record_of(self.from_records, row, left), written=has_digits or left is not None)
                for row, left in zip(
                    zip(*values, strict=True) if values else [()] * batch.num_rows, rescued, strict=True
                )
            ]
            kept = [name for name in batch.schema.names if name not in (*self.from_records, RESCUED)]
            fields = [*(batch.schema.field(name) for name in kept), pa.field(DOCUMENT, pa.string())]
            columns = [*(batch.column(name) for name in kept), pa.array(texts, pa.string())]
            if self.declared is not None:
                fields.append(pa.field(MISFITS, pa.string()))
                columns.append(pa.array([misfits_of(left, self.declared) for left in rescued], pa.string()))
            yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _values(column: pa.Array) -> list[Any]:
    return list(with_doubles(column).to_pylist(maps_as_pydicts="lossy"))


def with_doubles(column: pa.Array) -> pa.Array:
    """Doubles in the place of floats, by their texts: the nearest double of a float has digits that nobody wrote."""
    texts, doubles = (_without_floats(column.type, kind) for kind in (pa.string(), pa.float64()))
    return column if texts == column.type else column.cast(texts).cast(doubles)


def _has_decimals(kind: pa.DataType) -> bool:
    """Also inside arrays and structs. `json` would write the nearest double of one."""
    return pa.types.is_decimal(kind) or any(_has_decimals(kind.field(n).type) for n in range(kind.num_fields))


def _without_floats(kind: pa.DataType, by: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([one.with_type(_without_floats(one.type, by)) for one in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_without_floats(kind.item_type, by)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_floats(kind.value_type, by)))
    return by if pa.types.is_float32(kind) else kind


def _whole(row: Sequence[Any], rescued: str | None) -> str | None:
    """The text of a record that was rescued whole. Its fields would become columns, if it was a value of one field."""
    whole = None if rescued is None or any(value is not None for value in row) else rescued_whole(rescued)
    return whole if whole is not None and problem_of(whole) is None else None


def misfits_of(rescued: str | None, declared: Mapping[str, Any]) -> str | None:
    """The values that did not fit declared columns, as `shaping` takes them; None where all did. A column that could not be
    computed is among them as null."""
    if rescued is None:
        return None
    record = read_json(rescued)
    computed = {key: None for key, value in record.items() if value is None}
    found = {**computed, **_declared_part(record, declared)}
    return write_json([{key: value} for key, value in found.items()], bare=True) if found else None


def _declared_part(record: dict[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, inner in declared.items():
        key = taken_key(record, name)
        value = None if key is None else record[key]
        if key is not None and inner and isinstance(value, dict):
            if part := _declared_part(value, inner):
                found[key] = part
        elif key is not None and not inner and value is not None:
            found[key] = value
    return found


def record_of(names: Sequence[str], values: Sequence[Any], rescued: str | None) -> dict[str, Any]:
    """A rescued value is the value as it came; a column may hold its text."""
    record = {name: in_json(value) for name, value in zip(names, values, strict=True) if value is not None}
    return record if rescued is None else nested_over(record, read_json(rescued))


def _text(record: dict[str, Any], *, written: bool) -> str:
    return write_json(record, bare=True) if written else json.dumps(record)


def in_json(value: Any) -> Any:
    """As a record may have said it, without the nulls of objects. A column of another type than those of JSON was declared
    once, or is somebody else's."""
    if isinstance(value, dict):
        return {key: in_json(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [in_json(inner) for inner in value]
    if isinstance(value, date):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Decimal):
        return Written(f"{value:f}")
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def nested_over(record: dict[str, Any], rescued: dict[str, Any]) -> dict[str, Any]:
    """Both at once. A key that is spelled otherwise than its column is a key of its own. Its text in the column goes, or the
    nearest double, because the rescued value is the value itself."""
    for key, value in rescued.items():
        name = safe_name(key)
        if name != key and _stands_for(record.get(name), value):
            del record[name]
    return nested(record, rescued)


def _stands_for(held: Any, value: Any) -> bool:
    """Whether the column has a text of the value, or the nearest double. Where it has the very value, that is a twin's."""
    if isinstance(held, float) and isinstance(value, int | float):
        exact = is_exact(value.text) if isinstance(value, Written) else value == held
        return not exact and abs(value) < 10**300 and float(value) == held
    return isinstance(held, str) and not isinstance(value, str) and held == text_of(value)
