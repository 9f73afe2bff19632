"""The declared columns of thousands of records at once, out of one parse by Arrow. `declared` and `field` are the definition.

In: `Records`, and the declared columns that are read from them. Out: an array for each column, in the order of the records,
and what did not fit, as `table.shaping` takes it. A value whose Arrow type gives the same result as its text is converted
here. Every other record is read once more, by the definition, including those that have a field under several keys. Arrays
and structs are always read from the text, and their records' other columns are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.declaration.column import Column
from forebay.declaration.column_name import family_of, taken_key
from forebay.declaration.column_type import is_nested
from forebay.declaration.path import Path, parse_path
from forebay.record.arrow_type import TYPES, arrow_type_of
from forebay.record.conform import Records
from forebay.record.declared import fits, nested_value, nested_value_of, value_of
from forebay.record.field import text_of_field, value_at
from forebay.record.moment import MICROS_OF_A_DAY, PLACES, micros_since_1970
from forebay.record.number import read_json, write_json
from forebay.record.parsed_numbers import TEXTS, Bits, none_fits, of_doubles, of_whole_numbers, shows_digits

ISO = r"^[12]\d{3}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?Z$"
"""The usual way to write a moment. Any other is read by the definition."""


class NotOrdinary(Exception):
    """A record that cannot be read, which `record.number.problem_of` says before; the caller leaves it `unread`."""


@dataclass(frozen=True)
class Typed:
    """`misfits` is JSON, an array of objects with one field each, or null, for each record."""

    columns: list[pa.Array]
    misfits: pa.StringArray


def typed(records: Records, columns: Sequence[Column], unread: Sequence[int] = ()) -> Typed:
    """The values of these columns, which are all read from the record. Those of `unread` records are null."""
    paths = [parse_path(column.source) for column in columns]
    odd = np.zeros(len(records.texts), bool)
    odd[records.walked_positions] = True
    has_nested = np.zeros(len(records.texts), bool)
    inexact: Bits | None = None
    made: list[list[pa.Array]] = [[] for _ in columns]
    at = 0
    for part in records.parsed_parts:
        for into, column in zip(made, columns, strict=True):
            into.append(pa.nulls(part.start - at, arrow_type_of(column)))
        fields, nothing = _Fields(part.whole), pa.nulls(part.stop - part.start)
        for into, column, path in zip(made, columns, paths, strict=True):
            if is_nested(column.type) and not path.has_position:
                has_nested[part.start : part.stop] |= fields.has(path.keys[0])
                into.append(pa.nulls(part.stop - part.start, arrow_type_of(column)))
                continue
            if path.has_position:  # an element of an array is read by the definition
                odd[part.start : part.stop] |= fields.has(path.keys[0])
            found, twins = (None, None) if path.has_position else fields.at(path)
            if twins is not None:
                odd[part.start : part.stop] |= twins
            found = nothing if found is None else found
            if inexact is None and shows_digits(found.type, column):
                inexact = records.inexact
                odd |= inexact
            values, unfit = _converted(found, column)
            if unfit is not None:
                odd[part.start : part.stop] |= unfit
            into.append(values)
        at = part.stop
    whole = [
        pa.concat_arrays([*into, pa.nulls(len(odd) - at, arrow_type_of(column))])
        for into, column in zip(made, columns, strict=True)
    ]
    odd[list(unread)] = has_nested[list(unread)] = False
    if has_nested.any():
        odd |= _read_nested(records.texts, columns, paths, whole, np.flatnonzero(has_nested & ~odd))
    return _with_walked(records.texts, columns, paths, whole, odd, records.rules.undeclared == "ignore")


def _read_nested(
    texts: pa.StringArray, columns: Sequence[Column], paths: Sequence[Path], whole: list[pa.Array], places: Any
) -> Bits:
    """Puts the arrays and structs of these records into their columns. Returns the records in which one does not fit."""
    nested = [n for n, column in enumerate(columns) if is_nested(column.type) and not paths[n].has_position]
    values: dict[int, list[Any]] = {n: [] for n in nested}
    odd = np.zeros(len(texts), bool)
    for place, text in zip(places.tolist(), texts.take(pa.array(places, pa.int64())).to_pylist(), strict=True):
        record = _record(text)
        for n in nested:
            found = value_at(record, paths[n])
            made, fit = (nested_value_of if isinstance(found, str) else nested_value)(found, columns[n].type)
            values[n].append(made)
            odd[place] |= not fit
    for n in nested:
        whole[n] = _replaced(whole[n], places, _array(values[n], columns[n]))
    return odd


def _replaced(array: pa.Array, places: Any, by: pa.Array) -> pa.Array:
    sources = np.arange(len(array))
    sources[places] = len(array) + np.arange(len(places))
    return pa.concat_arrays([array, by]).take(pa.array(sources))


def _with_walked(
    texts: pa.StringArray,
    columns: Sequence[Column],
    paths: Sequence[Path],
    whole: list[pa.Array],
    odd: Bits,
    keeps_arrays: bool,
) -> Typed:
    """Where records are odd, what the definition says of them."""
    places = np.flatnonzero(odd)
    if not len(places):
        return Typed(whole, pa.nulls(len(odd), pa.string()))
    walked = [_walked(text, columns, paths, keeps_arrays) for text in texts.take(pa.array(places)).to_pylist()]
    whole_again = [
        _replaced(array, places, _array([values[n] for values, _ in walked], column))
        for n, (array, column) in enumerate(zip(whole, columns, strict=True))
    ]
    misfits = pa.array([misfit for _, misfit in walked], pa.string())
    return Typed(whole_again, _replaced(pa.nulls(len(odd), pa.string()), places, misfits))


def _array(values: list[Any], column: Column) -> pa.Array:
    return pa.array(values, arrow_type_of(column))


# --- one record ---


def _walked(
    text: str, columns: Sequence[Column], paths: Sequence[Path], keeps_arrays: bool = False
) -> tuple[list[Any], str | None]:
    """An element of an array that does not fit stays with its array: the whole array is a misfit where nothing else of it is
    kept."""
    record = _record(text)
    values, misfits = [], list[dict[str, Any]]()
    for column, path in zip(columns, paths, strict=True):
        found = value_at(record, path)
        written = text_of_field(found)
        values.append(None if written is None else converted(written, column))
        if found is None or (written is not None and fits(written, column)) or (path.has_position and not keeps_arrays):
            continue
        misfit = _as_written(record, path.keys)
        if misfit not in misfits:
            misfits.append(misfit)
    return values, write_json(misfits, bare=True) if misfits else None


def _record(text: str) -> dict[str, Any]:
    try:
        record = read_json(text)
    except ValueError as broken:
        raise NotOrdinary(f"a record cannot be read here: {broken}") from broken
    if type(record) is not dict:
        raise NotOrdinary("a record is not an object")
    return record


def with_misfits(records: Records, misfits: pa.StringArray, unfit: Mapping[Column, Bits]) -> pa.StringArray:
    """The misfits, and those of the records whose text was found not to fit the column elsewhere."""
    keeps_arrays = records.rules.undeclared == "ignore"
    more: dict[int, list[str]] = {}
    for column, which in unfit.items():
        path = parse_path(column.source)
        if keeps_arrays or not path.has_position:
            for row in np.flatnonzero(which).tolist():
                found = _as_written(read_json(records.texts[row].as_py()), path.keys)
                more.setdefault(row, []).append(write_json(found, bare=True))
    return with_elements(misfits, more)


def with_elements(arrays: pa.StringArray, more: Mapping[int, Sequence[str]]) -> pa.StringArray:
    """Arrays in JSON, with these elements before their own. Null is an array without any."""
    if not more:
        return arrays
    made = arrays.to_pylist()
    for row, elements in more.items():
        rest = "," + made[row][1:] if made[row] is not None else "]"
        made[row] = "[" + ",".join(elements) + rest
    return pa.array(made, pa.string())


def converted(text: str, column: Column) -> Any:
    """The text's value in the column, as Arrow takes it; None where it has none."""
    if column.unit is not None and (micros := micros_since_1970(text, PLACES[column.unit])) is not None:
        return micros if column.type == "timestamp" else micros // MICROS_OF_A_DAY
    return value_of(text, column.type)


def _as_written(record: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """The field alone, under the keys that the record has for it."""
    found: Any = record
    keys: list[str] = []
    for step in path:
        keys.append(taken_key(found, step) or step)
        found = found[keys[-1]]
    made: dict[str, Any] = {keys[-1]: found}
    for key in reversed(keys[:-1]):
        made = {key: made}
    return made


# --- many at once ---


class _Fields:
    """The fields of an object. Each is searched for once, however many columns there are."""

    def __init__(self, of: pa.StructArray) -> None:
        self._arrays: list[pa.Array] = of.flatten() if of.type.num_fields else []
        self._places: dict[str, list[int]] = {}
        for place, field in enumerate(of.type):
            self._places.setdefault(family_of(field.name), []).append(place)
        self._below: dict[int, _Fields] = {}

    def at(self, path: Path) -> tuple[pa.Array | None, Bits | None]:
        """Where records have twins on the way, it is not said which of them counts, but which records have one."""
        fields: _Fields | None = self
        found: pa.Array | None = None
        for step in path.steps:
            places = [] if fields is None else fields._places.get(family_of(str(step)), [])
            if fields is None or not places:
                return None, None
            if len(places) > 1:
                return None, fields.has(str(step))
            found, fields = fields._arrays[places[0]], fields._fields_below(places[0])
        return found, None

    def has(self, key: str) -> Bits:
        """Which objects have this field, or a twin of it."""
        found = [self._arrays[place] for place in self._places.get(family_of(key), [])]
        return np.logical_or.reduce([np.asarray(pc.is_valid(one)) for one in found]) if found else False

    def _fields_below(self, place: int) -> _Fields | None:
        if place not in self._below and pa.types.is_struct(self._arrays[place].type):
            self._below[place] = _Fields(self._arrays[place])
        return self._below.get(place)


def _converted(found: pa.Array, column: Column) -> tuple[pa.Array, Bits | None]:
    """The values, and which records must be walked; those are null, or whatever."""
    have = found.type
    if pa.types.is_null(have):
        return pa.nulls(len(found), arrow_type_of(column)), None
    if pa.types.is_string(have):
        return _of_texts(found, column)
    if pa.types.is_int64(have):
        return of_whole_numbers(found, column)
    if pa.types.is_float64(have):
        return of_doubles(found, column)
    if pa.types.is_boolean(have) and column.type in ("boolean", *TEXTS):
        return pc.cast(found, arrow_type_of(column)), None
    return none_fits(found, column)


def _of_texts(found: pa.StringArray, column: Column) -> tuple[pa.Array, Bits | None]:
    if column.type in TEXTS:
        return found, None
    if column.type == "binary":
        return pc.cast(found, pa.binary()), None
    if column.type == "timestamp" and column.unit is None and (moments := _moments(found)) is not None:
        return moments
    return _by_text(found, lambda text: converted(text, column), lambda text: fits(text, column), arrow_type_of(column))


def _moments(found: pa.StringArray) -> tuple[pa.Array, Bits] | None:
    """None where a text only looks like a moment."""
    usual = pc.fill_null(pc.match_substring_regex(found, ISO), False)
    try:
        made = pc.cast(pc.if_else(usual, found, pa.scalar(None, pa.string())), TYPES["timestamp"])
    except pa.ArrowInvalid:
        return None
    return made, np.asarray(pc.and_(pc.is_valid(found), pc.invert(usual)))


def _by_text(
    found: pa.StringArray, convert: Callable[[str], Any], fit: Callable[[str], bool], kind: pa.DataType
) -> tuple[pa.Array, Bits]:
    """Converts by the definition, once for each distinct text."""
    encoded = found.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    values = pa.array([convert(text) for text in texts], kind)
    unfit = pa.array([not fit(text) for text in texts], pa.bool_())
    return values.take(encoded.indices), np.asarray(pc.fill_null(unfit.take(encoded.indices), False))
