"""The statistics of a data file, in the words of Delta's log: `numRecords`, `minValues`, `maxValues`, `nullCount`.

In: Arrow tables, piece by piece during the writing. Out: the JSON text of an add action's `stats`. Readers skip files by it,
so a bound may be missing but never wrong. Strings are cut as Delta cuts them: 32 characters, the maximum rounded up.
Timestamps are cut to milliseconds, as the protocol says. Infinities are left out. A column with a NaN has no maximum, because
Spark sorts NaN above every number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from forebay.declaration.layout import INDEXED_COLUMNS

STRING_PREFIX = 32
ASCII_MAX, UNICODE_MAX = "\x7f", "\U0010ffff"

Path = tuple[str, ...]


class Statistics:
    """The statistics of one data file. `observe` each piece once, then `as_json`."""

    def __init__(self) -> None:
        self._records = 0
        self._nulls: dict[Path, int] = {}
        self._min: dict[Path, Any] = {}
        self._max: dict[Path, Any] = {}
        self._with_nan: set[Path] = set()

    def observe(self, piece: pa.Table) -> None:
        self._records += piece.num_rows
        for path, column in leaves(piece):
            self._nulls[path] = self._nulls.get(path, 0) + column.null_count
            if column.null_count < len(column) and has_order(column.type):
                self._observe_bounds(path, column)

    def _observe_bounds(self, path: Path, column: pa.ChunkedArray) -> None:
        if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
            self._with_nan.add(path)
            column = column.filter(pc.invert(pc.is_nan(column)))
            if column.null_count == len(column):
                return
        bounds = pc.min_max(column)
        low, high = plain(bounds["min"]), plain(bounds["max"])
        # Strings compare by code points here, which is the order of their UTF-8 bytes, and so Spark's.
        self._min[path] = min(low, self._min.get(path, low))
        self._max[path] = max(high, self._max.get(path, high))

    def as_json(self) -> str:
        bounds_below = {path: written_min(value) for path, value in self._min.items()}
        bounds_above = {path: written_max(value) for path, value in self._max.items() if path not in self._with_nan}
        return exact_json(
            {
                "numRecords": self._records,
                "minValues": nested(bounds_below),
                "maxValues": nested(bounds_above),
                "nullCount": nested(self._nulls),
            }
        )


def leaves(piece: pa.Table) -> Iterator[tuple[Path, pa.ChunkedArray]]:
    """The first 32 leaf columns; an array or a map is one leaf. A field is null where its struct is."""
    left = INDEXED_COLUMNS
    for name, column in zip(piece.schema.names, piece.columns, strict=True):
        for path, leaf in leaves_of((name,), column):
            if left == 0:
                return
            left -= 1
            yield path, leaf


def leaves_of(path: Path, column: pa.ChunkedArray) -> Iterator[tuple[Path, pa.ChunkedArray]]:
    if not pa.types.is_struct(column.type):
        yield path, column
        return
    for field, child in zip(column.type, column.flatten(), strict=True):
        yield from leaves_of((*path, field.name), child)


def has_order(kind: pa.DataType) -> bool:
    """The types whose bounds Delta writes down; booleans and binary have a null count only."""
    t = pa.types
    return bool(
        t.is_integer(kind)
        or t.is_floating(kind)
        or t.is_decimal(kind)
        or t.is_string(kind)
        or t.is_large_string(kind)
        or t.is_date(kind)
        or t.is_timestamp(kind)
    )


class Micros(int):
    """Microseconds since 1970, so that they are not taken for a number."""


class Days(int):
    """Days since 1970."""


def plain(value: pa.Scalar) -> Any:
    """A Python value without loss: Arrow's times reach beyond Python's."""
    if pa.types.is_timestamp(value.type):
        return Micros(value.cast(pa.timestamp("us", value.type.tz)).value)
    if pa.types.is_date(value.type):
        return Days(value.cast(pa.date32()).value)
    return value.as_py()


def written_min(value: Any) -> Any:
    return value[:STRING_PREFIX] if isinstance(value, str) else written(value)


def written_max(value: Any) -> Any:
    return cut_above(value) if isinstance(value, str) else written(value)


def cut_above(text: str) -> str | None:
    """A short string that is at least `text`: cut, and its end raised. None where every candidate is the last character."""
    for length in range(STRING_PREFIX, 2 * STRING_PREFIX + 1):
        if length >= len(text):
            return text
        if text[length] != UNICODE_MAX:
            return text[:length] + (ASCII_MAX if text[length] < ASCII_MAX else UNICODE_MAX)
    return None


def written(value: Any) -> Any:
    """The value in JSON; None if JSON cannot express it."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    try:
        if isinstance(value, Days):
            return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
        if isinstance(value, Micros):
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=value // 1000)
            return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except OverflowError:
        return None
    return value


def nested(values: dict[Path, Any]) -> dict[str, Any]:
    """{("a", "b"): 1} becomes {"a": {"b": 1}}; None is left out."""
    tree: dict[str, Any] = {}
    for path, value in values.items():
        if value is None:
            continue
        branch = tree
        for name in path[:-1]:
            branch = branch.setdefault(name, {})
        branch[path[-1]] = value
    return tree


def exact_json(value: Any) -> str:
    """JSON in which a decimal is a number with all its digits, which `json` does not write."""
    try:
        return json.dumps(value, separators=(",", ":"))
    except TypeError:
        pass
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{exact_json(v)}" for name, v in value.items()) + "}"
    return format(value, "f") if isinstance(value, Decimal) else json.dumps(value)
