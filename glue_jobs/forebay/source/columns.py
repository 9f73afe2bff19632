"""JSON documents become Arrow columns of the schema that a notebook declares.

In: texts of documents, and a Spark schema. Out: columns, and the documents that did not fit. A value is converted by
`record.declared`, as in a declared column of a service; only a binary is base64, as for Spark's JSON reader. A value that does
not fit is null, its siblings stay, and its document is named. A text that is not one JSON object is null in every column, and
named too. A field that the schema lacks is ignored; one that the record lacks is null.

Columns are built one by one: Arrow gets a column unchanged if all its values are of the column's kind, which is nearly always
the case.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T

from forebay.errors import InvalidConfiguration, Problem
from forebay.record.declared import is_whole_of, value_of
from forebay.record.field import text_of_field
from forebay.record.number import Written, is_exact, read_json


@dataclass(frozen=True)
class Columns:
    """One array for each field of the schema. `misfits` are the places of the documents that did not fit; `inexact` those of
    which a number is only nearly in its column."""

    arrays: list[pa.Array]
    misfits: set[int]
    inexact: set[int]


def columns_of(texts: Sequence[str], schema: T.StructType, zone: tzinfo) -> Columns:
    """The columns of the documents, in their order. A time without an offset is local to the zone."""
    documents = [_parse(text) for text in texts]
    broken = {place for place, document in enumerate(documents) if document is None}
    built = _fields(documents, schema, zone)
    misfits = broken | built.misfits
    return Columns(built.arrays, misfits, built.inexact - misfits)


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


def _parse(text: str) -> dict[str, Any] | None:
    """The one object that the text is; None for anything else."""
    try:
        document = read_json(text)
    except ValueError:
        return None
    return document if type(document) is dict else None


@dataclass
class _Built:
    """Arrays of one or more fields, and the places of the documents with a misfit or an inexact number in them."""

    arrays: list[pa.Array]
    misfits: set[int] = field(default_factory=set)
    inexact: set[int] = field(default_factory=set)

    @property
    def array(self) -> pa.Array:
        return self.arrays[0]


def _fields(values: Sequence[dict[str, Any] | None], schema: T.StructType, zone: tzinfo) -> _Built:
    made = _Built([])
    for declared in schema.fields:
        name = declared.name
        built = _column([None if v is None else v.get(name) for v in values], declared.dataType, zone)
        made.arrays.append(built.array)
        made.misfits |= built.misfits
        made.inexact |= built.inexact
    return made


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
    within = _fields(kept, kind, zone)
    names = [pa.field(f.name, array.type) for f, array in zip(kind.fields, within.arrays, strict=True)]
    array = pa.StructArray.from_arrays(within.arrays, fields=names, mask=_nulls(kept))
    return _Built([array], lost | within.misfits, within.inexact)


def _lists(values: list[Any], kind: T.ArrayType, zone: tzinfo) -> _Built:
    """An element that does not fit is null."""
    kept, lost = _only(list, values)
    within = _column([e for v in kept if v is not None for e in v], kind.elementType, zone)
    owners = [place for place, v in enumerate(kept) if v is not None for _ in v]
    array = pa.ListArray.from_arrays(_offsets(kept), within.array, mask=_nulls(kept))
    return _Built([array], lost | {owners[n] for n in within.misfits}, {owners[n] for n in within.inexact})


def _maps(values: list[Any], kind: T.MapType, zone: tzinfo) -> _Built:
    """A value that does not fit is null; an object fits only if all its keys are texts."""
    objects, lost = _only(dict, values)
    odd = {place for place, v in enumerate(objects) if v is not None and any(text_of_field(k) is None for k in v)}
    kept = [None if place in odd else v for place, v in enumerate(objects)]
    within = _lists([None if v is None else list(v.values()) for v in kept], T.ArrayType(kind.valueType), zone)
    keys = pa.array([k for v in kept if v is not None for k in v], pa.string())
    offsets = pa.array(_offsets(kept).to_numpy(), mask=np.array([*(v is None for v in kept), False]))
    array = pa.MapArray.from_arrays(offsets, keys, within.array.flatten())
    return _Built([array], lost | odd | within.misfits, within.inexact)


def _scalars(values: list[Any], kind: T.DataType, zone: tzinfo) -> _Built:
    to = _ARROW[type(kind)] if not isinstance(kind, T.DecimalType) else pa.decimal128(kind.precision, kind.scale)
    if _are_all_as_they_should(values, kind):
        try:
            return _Built([pa.array(values, to)])
        except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
            pass  # a number that is too large, or half a surrogate pair: found one by one
    made, lost, inexact = [], set(), set()
    for place, value in enumerate(values):
        text = text_of_field(value)
        made.append(None if text is None else _scalar(text, kind, zone))
        if value is not None and made[-1] is None:
            lost.add(place)
        elif text is not None and not is_whole_of(text, _name(kind)):
            inexact.add(place)
    return _Built([pa.array(made, to)], lost, inexact)


def _are_all_as_they_should(values: list[Any], kind: T.DataType) -> bool:
    """Whether Arrow may be given them without a look at each."""
    if not set(map(type, values)) <= _AS_THEY_ARE.get(type(kind), set()):
        return False
    return not isinstance(kind, T.DoubleType) or all(is_exact(v.text) for v in values if type(v) is Written)


def _scalar(text: str, kind: T.DataType, zone: tzinfo) -> Any:
    if isinstance(kind, T.NullType):
        return None
    if isinstance(kind, T.BinaryType):
        return _bytes_of(text)
    return value_of(text, _name(kind), zone)


def _name(kind: T.DataType) -> str:
    """The type's name in a declaration."""
    if isinstance(kind, T.IntegerType | T.DecimalType):
        return kind.simpleString()
    return kind.typeName()


def _bytes_of(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


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


_NULL = type(None)
_AS_THEY_ARE: dict[type[T.DataType], set[type]] = {
    T.StringType: {str, _NULL},
    T.BooleanType: {bool, _NULL},
    T.LongType: {int, _NULL},
    T.IntegerType: {int, _NULL},
    T.ShortType: {int, _NULL},
    T.ByteType: {int, _NULL},
    T.DoubleType: {int, Written, _NULL},
}

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
