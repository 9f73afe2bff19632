"""The declared columns of a table's present rows, filled where a declaration is newer than the rows.

In: rows as `table.as_records` makes them of a table, with the text of each record, and the declarations. Out: the same rows
with a column for each declared one and with the values that did not fit, as `table.shaping` takes them. A column keeps its
values; where it has none, the record's field fills it. Where a column gets another type, its values are converted, and a
value that the new type would change is null and rescued.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.declaration.column import Column
from forebay.declaration.path import parse_path
from forebay.declaration.table import Table
from forebay.declared_sql.columns import OWN_COLUMNS, rules_of, spark_type, time_by_formats
from forebay.record.arrow_type import arrow_type_of
from forebay.record.conform import Records
from forebay.record.declared import is_whole_of
from forebay.record.number import decimal_of, read_json, write_json
from forebay.record.parsed_numbers import TEXTS
from forebay.record.typed import converted, typed, with_elements, with_misfits
from forebay.table.as_records import in_json, with_doubles
from forebay.table.data_files.in_arrow import columns_of_ddl, map_in_arrow
from forebay.table.shaping import DOCUMENT, MISFITS, nested, some_at_a_time, text

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

Bits = Any
"""One boolean for each row, in numpy."""
NUMBERS = ("int", "bigint", "float", "double", "decimal")
OLD, TEXT, FOUND, TIME = "_old_", "_text_", "_found_", "_time_"
"""Before a column's name: its present value, in the new type; its text, where it had another type; the text of the record's
field; and the time of either by the column's `formats`."""


def redeclared(records: DataFrame, table: Table) -> DataFrame:
    """Columns that are computed by SQL keep their values as well; those that the table lacks are null."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    kept = {there.name.lower(): there for there in records.schema.fields}
    olds = {column.name: kept.get(column.name.lower()) for column in table.columns}
    changed = {c.name for c in table.columns if (old := olds[c.name]) and not _is_of(old, c)}
    given = [_old(column, olds[column.name]).alias(OLD + column.name) for column in table.columns]
    given += [_text_of(old).alias(TEXT + name) for name, old in olds.items() if name in changed and old is not None]
    own = [name for name in (*OWN_COLUMNS, "_record", DOCUMENT, MISFITS) if name in records.columns]
    rows = records.select(*own, *given)
    if formatted := [column for column in table.columns if column.formats]:
        texts = StructType([StructField(FOUND + column.name, StringType()) for column in formatted])
        rows = map_in_arrow(rows, _Found(table, tuple(formatted)), StructType([*rows.schema.fields, *texts.fields]))
        for column in formatted:
            named = {before + column.name for before in (TEXT, FOUND)}
            fields = [one for one in rows.schema.fields if one.name in named and isinstance(one.dataType, StringType)]
            times = (time_by_formats(F.col(one.name), column) for one in fields)
            rows = rows.withColumn(TIME + column.name, F.coalesce(*times))
    columns = [StructField(c.name, columns_of_ddl(f"x {spark_type(c)}")["x"].dataType) for c in table.columns]
    made = [rows.schema[name] for name in own if name not in (DOCUMENT, MISFITS)]
    answer = StructType([*columns, *made, *(StructField(name, StringType()) for name in (DOCUMENT, MISFITS))])
    return map_in_arrow(rows, _Redeclared(table, frozenset(changed), tuple(answer.names)), answer)


def _is_of(old: StructField, column: Column) -> bool:
    return old.dataType.simpleString() == columns_of_ddl(f"x {spark_type(column)}")["x"].dataType.simpleString()


def _old(column: Column, old: StructField | None) -> Expression:
    """A column's values, in the type that it has now: null where that would change them, and where a text must be read."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import DateType, NumericType, TimestampNTZType, TimestampType

    kind = spark_type(column)
    nothing = F.lit(None).cast(kind)
    if old is None:
        return nothing
    had = F.col(old.name)
    if _is_of(old, column):
        return had
    numbers = isinstance(old.dataType, NumericType) and kind.lower().startswith(NUMBERS)
    times = isinstance(old.dataType, TimestampType | TimestampNTZType | DateType)
    if not numbers and not (times and column.type in ("timestamp", "date")):
        return nothing
    cast = had.try_cast(kind)
    return F.when(cast.try_cast(old.dataType) == had, cast)


def _text_of(old: StructField) -> Expression:
    """Spark's JSON of an array, a struct or a map would have times without microseconds, and bytes in Base64: see `_texts`."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    had = F.col(old.name)
    return had if isinstance(old.dataType, ArrayType | MapType | StructType) else had.cast("string")


@dataclass(frozen=True)
class _Found:
    """The texts of fields whose times Spark reads by their `formats`."""

    table: Table
    columns: Sequence[Column]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rules, nothing = rules_of(self.table), pa.scalar(None, pa.string())
        of_record = [_as_text(column) for column in self.columns if column.of_record]
        for batch in batches:
            for rows in some_at_a_time(pa.Table.from_batches([batch])):
                found = typed(Records(text(rows), rules, shaped=False), of_record).columns
                texts = dict(zip([column.name for column in of_record], found, strict=True))
                for column in self.columns:
                    one = texts.get(column.name, pa.repeat(nothing, rows.num_rows))
                    rows = rows.append_column(pa.field(FOUND + column.name, pa.string()), one)
                yield from rows.combine_chunks().to_batches()


@dataclass(frozen=True)
class _Redeclared:
    """The rows of one task. `changed` columns have another type than before."""

    table: Table
    changed: frozenset[str]
    names: Sequence[str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for rows in some_at_a_time(pa.Table.from_batches([batch])):
                made = self._columns(rows.combine_chunks())
                arrays = [made[name] if name in made else rows[name].combine_chunks() for name in self.names]
                yield pa.RecordBatch.from_arrays(arrays, list(self.names))

    def _columns(self, rows: pa.Table) -> dict[str, pa.Array]:
        records = Records(text(rows), rules_of(self.table), shaped=False)
        of_record = [c for c in self.table.columns if c.of_record]
        read = typed(records, [_as_text(c) if c.formats or c.name in self.changed else c for c in of_record])
        found = dict(zip([column.name for column in of_record], read.columns, strict=True))
        made: dict[str, pa.Array] = {}
        unfit: dict[Column, Any] = {}
        elements = self._not_computed(rows)
        for column in self.table.columns:
            of_field, old = found.get(column.name), _array(rows, OLD + column.name, arrow_type_of(column))
            if column.name in self.changed:
                made[column.name], texts, unfit[column] = self._changed(rows, column, old, of_field)
                for row, value in texts.items():
                    elements.setdefault(row, []).append(write_json(_placed(column, value), bare=True))
            elif column.formats and of_field is not None:
                time = _array(rows, TIME + column.name, arrow_type_of(column))
                made[column.name] = _first_of(old, time)
                unfit[column] = np.asarray(pc.and_(pc.is_valid(of_field), pc.is_null(time)))
            elif of_field is None:
                made[column.name] = old
            else:
                made[column.name], unfit[column] = _first_of(old, of_field), _differ(old, of_field)
        misfits = with_misfits(records, read.misfits, unfit)
        return {**made, MISFITS: with_elements(misfits, elements)}

    def _not_computed(self, rows: pa.Table) -> dict[int, list[str]]:
        """By row, the columns whose SQL could not be computed: they stay so."""
        computed = {write_json({c.name: None}) for c in self.table.columns if c.expression}
        misfits = rows[MISFITS].to_pylist() if MISFITS in rows.column_names else ()
        found = ((row, [write_json(one) for one in read_json(texts)]) for row, texts in enumerate(misfits) if texts)
        return {row: left for row, some in found if (left := [one for one in some if one in computed])}

    def _changed(
        self, rows: pa.Table, column: Column, old: pa.Array, of_field: pa.Array | None
    ) -> tuple[pa.Array, dict[int, str], Bits]:
        """The values, by row the texts that say more than their value, and which rows have another key's value."""
        kind, texts = arrow_type_of(column), _texts(rows[TEXT + column.name].combine_chunks())
        twins = np.zeros(len(texts), bool)
        if of_field is not None:
            texts, is_rescued, twins = _together(texts, of_field)
            old = pc.if_else(pa.array(is_rescued), pa.scalar(None, kind), old)
        values = _first_of(old, _array(rows, TIME + column.name, kind) if column.formats else _read(texts, column))
        if column.type in TEXTS:
            return values, {}, twins
        known = zip(texts.to_pylist(), pc.is_valid(values).to_pylist(), strict=True)
        odd = {
            row: one
            for row, (one, has_value) in enumerate(known)
            if one is not None and not (has_value and is_whole_of(one, column.type))
        }
        return values, odd, twins


def _as_text(column: Column) -> Column:
    return column.model_copy(update={"type": "string", "formats": (), "unit": None})


def _array(rows: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    return rows[name].combine_chunks().cast(kind)


def _texts(values: pa.Array) -> pa.StringArray:
    """Arrays, structs and maps as the JSON that a record may have had."""
    if not pa.types.is_nested(values.type):
        return values.cast(pa.string())
    values = with_doubles(values)
    plain = (None if value is None else _in_json(value, values.type) for value in values.to_pylist())
    return pa.array([None if one is None else write_json(one, ascii_only=False) for one in plain], pa.string())


def _in_json(value: Any, kind: pa.DataType) -> Any:
    """A map keeps its nulls."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {of.name: _in_json(value[of.name], of.type) for of in kind if value[of.name] is not None}
    if pa.types.is_map(kind):
        return {str(in_json(key)): _in_json(inner, kind.item_type) for key, inner in value}
    if pa.types.is_list(kind):
        return [_in_json(inner, kind.value_type) for inner in value]
    return in_json(value)


def _read(texts: pa.StringArray, column: Column) -> pa.Array:
    """As the same texts of a record would be."""
    encoded = texts.dictionary_encode()
    values = [converted(one, column) for one in encoded.dictionary.to_pylist()]
    return pa.array(values, arrow_type_of(column)).take(encoded.indices)


def _first_of(one: pa.Array, other: pa.Array) -> pa.Array:
    """Takes the first value of each row that is not null, of any type."""
    rows = np.arange(len(one))
    return pa.concat_arrays([one, other]).take(pa.array(np.where(np.asarray(pc.is_valid(one)), rows, rows + len(one))))


def _differ(one: pa.Array, other: pa.Array) -> Bits:
    """Finds rows in which both have a value, and not the same. A column without its rescued value has the value of a twin of
    the key."""
    found = np.zeros(len(one), bool)
    both = np.flatnonzero(np.asarray(pc.and_(pc.is_valid(one), pc.is_valid(other))))
    pairs = zip(one.take(pa.array(both)).to_pylist(), other.take(pa.array(both)).to_pylist(), strict=True)
    found[both] = [mine != theirs for mine, theirs in pairs]
    return found


def _together(texts: pa.StringArray, rescued: pa.StringArray) -> tuple[pa.StringArray, Bits, Bits]:
    """The texts of a column with what was rescued of its field, where that was rescued, and where it was a twin's. A rescued
    value is the record's own: the column may have fewer digits, gaps in an array, or only a part of an object."""
    values, is_rescued = _first_of(texts, rescued).to_pylist(), np.asarray(pc.is_valid(rescued)).copy()
    twins = np.zeros(len(values), bool)
    for row in np.flatnonzero(is_rescued & np.asarray(pc.is_valid(texts))).tolist():
        if (whole := _whole(values[row], rescued[row].as_py())) is None:
            is_rescued[row], twins[row] = False, True
        else:
            values[row] = whole
    return pa.array(values, pa.string()), is_rescued, twins


def _whole(text: str, rescued: str) -> str | None:
    """The value, from what fitted the column and what did not; None where these are two values."""
    numbers = decimal_of(text), decimal_of(rescued)
    if text == rescued or (None not in numbers and len({float(one) for one in numbers if one is not None}) == 1):
        return rescued
    parts = [_parsed(one) for one in (text, rescued)]
    if all(isinstance(part, dict) for part in parts):
        return write_json(nested(*parts), bare=True)
    return rescued if all(isinstance(part, list) for part in parts) else None


def _parsed(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return None


def _placed(column: Column, text: str) -> Any:
    """The text where the column is read from."""
    made: Any = text
    for step in reversed(parse_path(column.source).steps):
        made = [*[None] * step, made] if isinstance(step, int) else {str(step): made}
    return made
