"""The values of a declared column, out of numbers that Arrow parsed.

In: an array of whole numbers or doubles, and the column. Out: its values, and which records must be read from their text,
because the number is another one there, or does not fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.declaration.column import Column
from forebay.record.arrow_type import TYPES, arrow_type_of
from forebay.record.moment import AFTER, FIRST, MICROS_OF_A_DAY, PLACES

TEXTS = ("string", "json")
EXACT = 2**53
"""Whole numbers up to here are doubles."""
EXACT_DIGITS = 10**15

Bits = Any
"""One boolean for each record, in numpy."""


def none_fits(found: pa.Array, column: Column) -> tuple[pa.Array, Bits]:
    """All null: each value that there is must be read from its text."""
    return pa.nulls(len(found), arrow_type_of(column)), np.asarray(pc.is_valid(found))


def of_whole_numbers(found: pa.Int64Array, column: Column) -> tuple[pa.Array, Bits | None]:
    kind = arrow_type_of(column)
    if column.type in ("long", *TEXTS):
        return pc.cast(found, kind), None
    if column.type in ("int", "double", "float"):
        most = {"int": (1 << 31) - 1, "double": EXACT, "float": 1 << 24}[column.type]
        inside = _within(found, -most, most)
        return _cast_inside(found, inside, kind)
    if column.unit is not None:
        return _since_1970(found, column)
    if pa.types.is_decimal(kind):
        most = 10 ** max(0, min(18, kind.precision) - kind.scale) - 1
        inside = _within(found, -most, most)
        values = np.where(np.asarray(inside), np.asarray(pc.fill_null(found, 0)), 0)
        return _decimals(values * 10 ** min(18, kind.scale), found, kind), _outside(found, inside)
    return none_fits(found, column)


def _since_1970(found: pa.Int64Array, column: Column) -> tuple[pa.Array, Bits]:
    places = PLACES[column.unit or "s"]
    most = AFTER // 10 ** (6 - places) if places <= 6 else AFTER * 1000
    least = FIRST // 10 ** (6 - places) if places <= 6 else FIRST * 1000
    long = (1 << 63) - 1
    inside = _within(found, max(-long, least), min(long, most - 1))
    numbers = np.where(np.asarray(inside), np.asarray(pc.fill_null(found, 0)), 0)
    micros = numbers * 10 ** (6 - places) if places <= 6 else numbers // 1000
    mask = np.asarray(pc.is_null(found))
    if column.type == "date":
        days = pa.array((micros // MICROS_OF_A_DAY).astype(np.int32), pa.int32(), mask=mask)
        return days.cast(pa.date32()), _outside(found, inside)
    return pa.array(micros, pa.int64(), mask=mask).cast(TYPES["timestamp"]), _outside(found, inside)


def of_doubles(found: pa.DoubleArray, column: Column) -> tuple[pa.Array, Bits | None]:
    """A double of more than 2^53 may have been written as a whole number, with more digits than it holds."""
    kind = arrow_type_of(column)
    if column.type == "double":
        return found, _outside(found, _within(found, -float(EXACT - 1), float(EXACT - 1)))
    if not pa.types.is_decimal(kind):
        return none_fits(found, column)
    doubles = np.asarray(pc.fill_null(found, 0.0))
    most = min(EXACT_DIGITS, 10**kind.precision)
    with np.errstate(invalid="ignore", over="ignore"):
        counted = np.rint(doubles * 10**kind.scale)
        fit = (np.abs(counted) < most) & (counted / 10**kind.scale == doubles)
    values = np.where(fit, counted, 0).astype(np.int64)
    return _decimals(values, found, kind), np.asarray(pc.is_valid(found)) & ~fit


def _decimals(values: Any, like: pa.Array, kind: pa.DataType) -> pa.Array:
    """The decimals of integers in the smallest unit."""
    words = np.ascontiguousarray(np.stack((values, values >> 63), axis=1))
    made = pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(words)])
    return pc.if_else(pc.is_valid(like), made, pa.scalar(None, kind))


def _cast_inside(found: pa.Array, inside: pa.BooleanArray, kind: pa.DataType) -> tuple[pa.Array, Bits]:
    values = pc.if_else(inside, found, pa.scalar(None, found.type))
    return pc.cast(values, kind, safe=False), _outside(found, inside)


def _within(found: pa.Array, least: float, most: float) -> pa.BooleanArray:
    """Null counts as outside, and so does a value that is not a number."""
    low, high = pa.scalar(least, found.type), pa.scalar(most, found.type)
    return pc.fill_null(pc.and_(pc.greater_equal(found, low), pc.less_equal(found, high)), False)


def _outside(found: pa.Array, inside: pa.BooleanArray) -> Bits:
    return np.asarray(pc.and_(pc.is_valid(found), pc.invert(inside)))


def shows_digits(have: pa.DataType, column: Column) -> bool:
    """Whether a number that Arrow changes would be another value in the column."""
    return bool(
        pa.types.is_floating(have) or (pa.types.is_integer(have) and column.type in (*TEXTS, "double", "float"))
    )
