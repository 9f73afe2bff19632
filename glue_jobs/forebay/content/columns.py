"""JSON documents become Arrow columns of a declared schema, as Spark's own JSON reader would fill them.

In: texts of documents, and a Spark schema. Out: columns, and which documents did not fit. What does not fit its declared
type is null, its siblings stay, and its document is named; a text that is no JSON object, or more than one, is null in
every column and named too. A field that nobody declared is passed over; one that is not there is null. Unlike Spark: a
field in single quotes is no JSON, and a second document in one text is not dropped without a word.

Built column by column: a column whose values are all of its own kind, as nearly all are, is handed to Arrow as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from decimal import Decimal
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T

from forebay.content.value import converter, readable
from forebay.errors import InvalidConfiguration, Problem

__all__ = ["Columns", "columns_of", "refuse_types"]

_WHITE = " \t\r\n"


@dataclass(frozen=True)
class Columns:
    """One array a field of the schema, and the places of the documents that did not fit."""

    arrays: list[pa.Array]
    misfits: set[int]


def columns_of(texts: Sequence[str], schema: T.StructType, zone: tzinfo) -> Columns:
    """The columns of the documents, in their order."""
    scan = _exact if any(isinstance(kind, T.DecimalType) for kind in _kinds(schema)) else _quick
    documents = [_parse(text, scan) for text in texts]
    broken = {place for place, document in enumerate(documents) if document is None}
    arrays, misfits = _fields(documents, schema, zone)
    return Columns(arrays, misfits | broken)


def refuse_types(schema: T.StructType) -> None:
    """`InvalidConfiguration` where a field is of a type that JSON is not read into."""
    wrong = {kind.simpleString() for kind in _kinds(schema) if not isinstance(kind, _KNOWN)}
    wrong |= {k.simpleString() for k in _kinds(schema) if isinstance(k, T.MapType) and k.keyType != T.StringType()}
    if wrong:
        raise InvalidConfiguration(Problem("schema", f"JSON is not read into {kind}") for kind in sorted(wrong))


def _kinds(kind: T.DataType) -> Iterable[T.DataType]:
    yield kind
    inner: list[T.DataType] = []
    if isinstance(kind, T.StructType):
        inner = [f.dataType for f in kind.fields]
    elif isinstance(kind, T.ArrayType):
        inner = [kind.elementType]
    elif isinstance(kind, T.MapType):
        inner = [kind.valueType]
    for other in inner:
        yield from _kinds(other)


_Scan = Callable[[str, int], tuple[Any, int]]
_quick: _Scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_exact: _Scan = json.JSONDecoder(parse_float=Decimal).scan_once  # type: ignore[attr-defined]


def _parse(text: str, scan: _Scan) -> dict[str, Any] | None:
    """The one object that the text is; None for anything else."""
    try:
        document, end = scan(text, 0)
    except (ValueError, StopIteration, RecursionError):
        return None
    whole = end == len(text) or not text[end:].strip(_WHITE)
    return document if whole and type(document) is dict else None


@dataclass
class _Built:
    """An array. At the places `lost` it is null, since what was there did not fit; at those in `partly` something within
    is."""

    array: pa.Array
    lost: set[int] = field(default_factory=set)
    partly: set[int] = field(default_factory=set)


def _fields(
    values: Sequence[dict[str, Any] | None], schema: T.StructType, zone: tzinfo
) -> tuple[list[pa.Array], set[int]]:
    """An array for each field, and the places where any of them did not fit."""
    arrays: list[pa.Array] = []
    misfits: set[int] = set()
    for declared in schema.fields:
        name = declared.name
        built = _column([None if v is None else v.get(name) for v in values], declared.dataType, zone)
        arrays.append(built.array)
        misfits |= built.lost | built.partly
    return arrays, misfits


def _column(values: list[Any], kind: T.DataType, zone: tzinfo) -> _Built:
    if isinstance(kind, T.StructType):
        return _structs(values, kind, zone)
    if isinstance(kind, T.ArrayType):
        return _lists(values, kind, zone)
    if isinstance(kind, T.MapType):
        return _maps(values, kind, zone)
    return _scalars(values, kind, zone)


def _structs(values: list[Any], kind: T.StructType, zone: tzinfo) -> _Built:
    kept, lost = _only(dict, values)
    arrays, partly = _fields(kept, kind, zone)
    names = [pa.field(f.name, array.type) for f, array in zip(kind.fields, arrays, strict=True)]
    return _Built(pa.StructArray.from_arrays(arrays, fields=names, mask=_nulls(kept)), lost, partly)


def _lists(values: list[Any], kind: T.ArrayType, zone: tzinfo) -> _Built:
    kept, lost = _only(list, values)
    elements = _column([e for v in kept if v is not None for e in v], kind.elementType, zone)
    owners = _owners(kept)
    if elements.lost:  # an array of which an element does not fit does not fit as a whole
        spoilt = {owners[place] for place in elements.lost}
        again = _lists([None if place in spoilt else v for place, v in enumerate(kept)], kind, zone)
        return _Built(again.array, lost | spoilt, again.partly)
    array = pa.ListArray.from_arrays(_offsets(kept), elements.array, mask=_nulls(kept))
    return _Built(array, lost, {owners[place] for place in elements.partly})


def _maps(values: list[Any], kind: T.MapType, zone: tzinfo) -> _Built:
    kept, lost = _only(dict, values)
    inner = _lists([None if v is None else list(v.values()) for v in kept], T.ArrayType(kind.valueType), zone)
    kept = [None if place in inner.lost else v for place, v in enumerate(kept)]
    keys = pa.array([readable(k) for v in kept if v is not None for k in v], pa.string())
    offsets = pa.array(_offsets(kept).to_numpy(), mask=np.array([*(v is None for v in kept), False]))
    return _Built(pa.MapArray.from_arrays(offsets, keys, inner.array.flatten()), lost | inner.lost, inner.partly)


def _scalars(values: list[Any], kind: T.DataType, zone: tzinfo) -> _Built:
    to = _ARROW[type(kind)] if not isinstance(kind, T.DecimalType) else pa.decimal128(kind.precision, kind.scale)
    if set(map(type, values)) <= _AS_THEY_ARE.get(type(kind), set()):
        try:
            return _Built(pa.array(values, to))
        except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
            pass  # a number that is too large, or half a surrogate pair: found one by one
    convert = converter(kind, zone)
    made = [None if v is None else convert(v) for v in values]
    lost = {place for place, (v, m) in enumerate(zip(values, made, strict=True)) if m is None and v is not None}
    return _Built(pa.array(made, to), lost)


def _only(wanted: type, values: list[Any]) -> tuple[list[Any], set[int]]:
    """The values of the wanted type, null in place of the others, and where those others were."""
    if set(map(type, values)) <= {wanted, type(None)}:
        return values, set()
    lost = {place for place, v in enumerate(values) if v is not None and type(v) is not wanted}
    return [v if type(v) is wanted else None for v in values], lost


def _nulls(values: list[Any]) -> pa.Array:
    return pa.array([v is None for v in values], pa.bool_())


def _offsets(values: list[Any]) -> pa.Array:
    lengths = (0 if v is None else len(v) for v in values)
    return pa.array(list(accumulate(lengths, initial=0)), pa.int32())


def _owners(values: list[Any]) -> list[int]:
    """For each element of all the lists, whose it is."""
    return [place for place, v in enumerate(values) if v is not None for _ in v]


_NULL = type(None)
_AS_THEY_ARE: dict[type[T.DataType], set[type]] = {
    T.StringType: {str, _NULL},
    T.BooleanType: {bool, _NULL},
    T.LongType: {int, _NULL},
    T.IntegerType: {int, _NULL},
    T.ShortType: {int, _NULL},
    T.ByteType: {int, _NULL},
    T.DoubleType: {float, _NULL},
}
"""What Arrow may be given without a look at each value."""

_ARROW: dict[type[T.DataType], pa.DataType] = {
    T.StringType: pa.string(),
    T.BooleanType: pa.bool_(),
    T.LongType: pa.int64(),
    T.IntegerType: pa.int32(),
    T.ShortType: pa.int16(),
    T.ByteType: pa.int8(),
    T.DoubleType: pa.float64(),
    T.FloatType: pa.float32(),
    T.BinaryType: pa.binary(),
    T.DateType: pa.date32(),
    T.TimestampType: pa.timestamp("us", tz="UTC"),
    T.TimestampNTZType: pa.timestamp("us"),
    T.NullType: pa.null(),
}
_KNOWN = (*_ARROW, T.DecimalType, T.StructType, T.ArrayType, T.MapType)
