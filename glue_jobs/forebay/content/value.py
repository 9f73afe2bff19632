"""One value of a JSON document becomes a value of a declared type, as Spark's own JSON reader makes it.

In: what the document holds, and the type. Out: what Arrow takes for a value of that type; None for what does not fit. A
number in quotes is no number, one with a point no integer; a text takes anything, what is no text as compact JSON.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from datetime import tzinfo
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

from pyspark.sql import types as T

from forebay.content.moment import day_of, local_micros_of, micros_of

__all__ = ["converter", "readable"]


def converter(kind: T.DataType, zone: tzinfo) -> Callable[[Any], Any]:
    """Makes a value of the type."""
    if isinstance(kind, T.StringType):
        return _as_text
    if isinstance(kind, T.BooleanType):
        return lambda v: v if type(v) is bool else None
    if isinstance(kind, T.IntegralType):
        most = _BEYOND[type(kind)]
        return lambda v: v if type(v) is int and -most <= v < most else None
    if isinstance(kind, T.DoubleType | T.FloatType):
        return _as_float
    if isinstance(kind, T.DecimalType):
        return lambda v: _as_decimal(v, kind.precision, kind.scale)
    if isinstance(kind, T.BinaryType):
        return _as_bytes
    if isinstance(kind, T.DateType):
        return day_of
    if isinstance(kind, T.TimestampType):
        return lambda v: micros_of(v, zone)
    return local_micros_of if isinstance(kind, T.TimestampNTZType) else lambda _: None


_BEYOND: dict[type[T.IntegralType], int] = {
    T.LongType: 1 << 63,
    T.IntegerType: 1 << 31,
    T.ShortType: 1 << 15,
    T.ByteType: 1 << 7,
}


def _as_text(value: Any) -> str:
    """A text; anything else as compact JSON."""
    return readable(value) if type(value) is str else readable(_compact(value))


def readable(text: str) -> str:
    """Half of a surrogate pair is no character."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _compact(value: Any) -> str:
    if type(value) is dict:
        return "{" + ",".join(f"{_quoted(k)}:{_compact(v)}" for k, v in value.items()) + "}"
    if type(value) is list:
        return "[" + ",".join(map(_compact, value)) + "]"
    if type(value) is float or type(value) is Decimal:
        return _number(float(value))
    return _quoted(value) if type(value) is str else json.dumps(value)


_ESCAPED = re.compile('["\\\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _quoted(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    short = _SHORT.get(found[0])
    halves = found[0].encode("utf-16-be", "surrogatepass").hex("-", 2).upper().split("-")
    return short or "".join(f"\\u{half}" for half in halves)


_PLAIN_FROM, _PLAIN_TO = 1e-3, 1e7


def _number(value: float) -> str:
    """As Java writes it."""
    if value != value or value in (float("inf"), float("-inf")):
        return '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'
    if value == 0 or _PLAIN_FROM <= abs(value) < _PLAIN_TO:
        return repr(value)
    digits = Decimal(repr(value))
    exponent = digits.adjusted()
    mantissa = format(digits.scaleb(-exponent).normalize(), "f")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{exponent}"


_NOT_FINITE = {
    "NaN": float("nan"),
    "+INF": float("inf"),
    "+Infinity": float("inf"),
    "Infinity": float("inf"),
    "-INF": float("-inf"),
    "-Infinity": float("-inf"),
}


def _as_float(value: Any) -> float | None:
    if type(value) in (int, float, Decimal):
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    return _NOT_FINITE.get(value) if type(value) is str else None


_WIDE = Context(prec=100, rounding=ROUND_HALF_UP)


def _as_decimal(value: Any, precision: int, scale: int) -> Decimal | None:
    if type(value) not in (int, str, Decimal):
        return None
    try:
        exact = Decimal(value).quantize(Decimal(1).scaleb(-scale), context=_WIDE)
    except InvalidOperation:
        return None
    return exact if exact.is_finite() and len(exact.as_tuple().digits) <= precision else None


def _as_bytes(value: Any) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True) if type(value) is str else None
    except (binascii.Error, ValueError):
        return None
