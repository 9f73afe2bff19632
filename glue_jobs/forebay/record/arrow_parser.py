"""Arrow's JSON parser, restricted to the rules of `walk`: on its own it guesses times, rounds numbers, and needs memory for
each field.

In: records as one Arrow array of text. Out: a struct array of the same length, or `Unordinary` where Arrow cannot do it as
`walk` would. Numbers that it would round must be found before (`inexact`). `ParseHints` keep what the last records of a table
have shown, for the next ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from forebay.declaration.column_name import safe_name
from forebay.record.kind import Kind, Many, Struct
from forebay.texts import borders_of, bytes_of, read_json

CELLS = 4_000_000
"""Values, nulls included, that Arrow makes at a time, or a few times as many: some 50 MB."""
BYTES_OF_A_FIELD = 10
"""The fewest bytes of JSON that a field needs: a first guess of the number of fields."""
LONG_BYTES = 8 << 10
"""A shorter record makes few enough cells."""
KEY = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:')
FASTER_AT_MOST = 4
TIMES_AT_MOST = 1000


class Unordinary(Exception):
    """These records must be walked."""


@dataclass
class ParseHints:
    """The fields that Arrow took for times, and that are declared as text to it. So the next records of the same table need
    not be parsed twice."""

    fields: pa.Schema | None = None
    rows: int = 0
    """The number of records that were parsed at a time, last."""
    numbers: bool = False
    """The last records had some in undeclared fields."""
    sparse: bool = False
    """Nearly each record has fields that no other one has: all are walked."""

    def more(self, times: list[pa.Field]) -> None:
        new = pa.schema(times)
        self.fields = new if self.fields is None else pa.unify_schemas([self.fields, new], promote_options="permissive")
        if leaves_of(pa.struct(self.fields)) > TIMES_AT_MOST:
            self.fields = None
            raise Unordinary("there are too many different fields")

    def next_rows(self, records: int, cells: int) -> int:
        """How many records to parse next, after this many with this many cells. Arrow takes memory for each field in each
        record, and in each object of an array; with identifiers for keys, the fields grow as fast as the records."""
        return max(1, int(records * min(FASTER_AT_MOST, (CELLS / max(1, cells)) ** 0.5)))


def read_records(texts: pa.StringArray, hints: ParseHints) -> pa.StructArray:
    """The records' fields. `pa.ArrowInvalid` names a record that Arrow refuses."""
    table = read_json(texts, hints.fields, others="infer")
    if times := list(_times(pa.struct(table.schema))):
        # Arrow takes text that looks like a date for one, and would write it in its own way.
        hints.more(times)
        table = read_json(texts, hints.fields, others="infer")
    if table.num_rows != len(texts):
        raise Unordinary("the records are not one object each")
    fields = table.combine_chunks()
    arrays = [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in fields.columns]
    if not arrays:
        raise Unordinary("the records have no fields")
    return pa.StructArray.from_arrays(arrays, fields=list(table.schema))


def first_rows(texts: pa.StringArray) -> int:
    """By the most fields that the records could have. Objects beside each other in an array have cells as records do."""
    rows = (CELLS * BYTES_OF_A_FIELD / max(1, texts.nbytes / len(texts))) ** 0.5
    some = texts.slice(0, int(rows) + 1)
    borders = borders_of(some)
    content = bytes_of(some)[borders[0] : borders[-1]].tobytes()
    beside = sum(content.count(between) for between in (b"},{", b"}, {"))
    return max(1, int(rows / (1 + beside / len(some)) ** 0.5))


def wide_in(texts: pa.StringArray) -> list[int]:
    """The records that make too many cells alone: many objects of their arrays have keys of their own."""
    long = pc.indices_nonzero(pc.greater(pc.binary_length(texts), LONG_BYTES))
    return [at for at in long.to_pylist() if _is_wide(texts[at].as_py())]


def _is_wide(text: str) -> bool:
    objects = text.count("{")
    return objects * len(text) > CELLS * BYTES_OF_A_FIELD and objects * len({*KEY.findall(text)}) > CELLS


def cells_of(array: pa.Array) -> int:
    """The innermost values, nulls included."""
    if pa.types.is_list(array.type):
        return cells_of(array.values)
    if pa.types.is_struct(array.type):
        return sum(cells_of(array.field(at)) for at in range(array.type.num_fields))
    return len(array)


def leaves_of(kind: pa.DataType) -> int:
    """The innermost fields."""
    if pa.types.is_list(kind):
        return leaves_of(kind.value_type)
    return sum(leaves_of(child.type) for child in kind) if pa.types.is_struct(kind) else 1


def has_numbers(kind: pa.DataType) -> bool:
    """Anywhere within. Arrow has one type for a field, so a field of another type has no number."""
    if pa.types.is_list(kind):
        return has_numbers(kind.value_type)
    if pa.types.is_struct(kind):
        return any(has_numbers(child.type) for child in kind)
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def may_be_whole(array: pa.Array, known: Kind | None) -> bool:
    """Whether a field has only numbers without a fraction here, though Arrow took it for one of doubles: records that were
    parsed beside these may have had fractions. Of `known` doubles it does not matter."""
    kind = array.type
    if pa.types.is_struct(kind):
        inner = known.fields if isinstance(known, Struct) else {}
        columns = ((inner.get(safe_name(child.name)), place) for place, child in enumerate(kind))
        children = array.flatten() if kind.num_fields and has_numbers(kind) else []
        return any(may_be_whole(children[at], None if of is None else of.kind) for of, at in columns if children)
    if pa.types.is_list(kind):
        return has_numbers(kind) and may_be_whole(array.flatten(), known.of if isinstance(known, Many) else None)
    if not pa.types.is_floating(kind) or known == "double" or array.null_count == len(array):
        return False
    return bool(pc.all(pc.equal(array, pc.round(array))).as_py())


def _times(kind: pa.DataType) -> Iterator[pa.Field]:
    """The fields, down to the innermost, that Arrow must read as text."""
    for child in kind:
        if (text := _as_text(child.type)) is not None:
            yield pa.field(child.name, text)


def _as_text(kind: pa.DataType) -> pa.DataType | None:
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        inner = list(_times(kind))
        return pa.struct(inner) if inner else None
    if pa.types.is_list(kind):
        element = _as_text(kind.value_type)
        return None if element is None else pa.list_(element)
    return None
