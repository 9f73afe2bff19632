"""The value of a field's text in its declared column, in plain Python: the definition of what `typed` does to
thousands of records at once.

In: a field's text, and the declaration of its column. Out: the value, or None if the text is not of that type; and whether it
fits. A value that does not fit is rescued. An array or a struct has a value if all its parts have one, and fits if all parts
fit and no field of an object is left out. Patterns of `formats` are Spark's; a pattern with more than numbers, such as `MMM`,
always counts as fitting.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import numpy as np

from forebay.declaration.column_name import taken_key
from forebay.declaration.column_type import ArrayOf, ColumnType, StructOf, is_nested, parts_of
from forebay.record.field import text_of_field
from forebay.record.moment import PLACES, day_of, local_micros_of, micros_of, micros_since_1970
from forebay.record.name import is_text
from forebay.record.number import BLANK, WIDE, decimal_of, is_exact, no_key_twice, read_json

if TYPE_CHECKING:
    from forebay.declaration.column import Column

CONTROL = BLANK + "\x7f"
"""Spark trims one more where it casts to whole numbers and booleans."""
WHOLE = re.compile(r"[+-]?[0-9]+")
LONGEST_WHOLE = 29
BITS = {"byte": 7, "short": 15, "int": 31, "long": 63}
NOT_FINITE = re.compile(r"[+-]?inf(inity)?|nan", re.IGNORECASE)
YES = frozenset({"t", "true", "y", "yes", "1"})
NO = frozenset({"f", "false", "n", "no", "0"})
LETTERS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "%f"}


def fits(text: str, column: Column) -> bool:
    """Whether the column's value says all that the text does."""
    if column.type in ("timestamp", "date") and column.formats:
        return any(_is_of_format(text, pattern) for pattern in column.formats)
    if column.unit is not None and micros_since_1970(text, PLACES[column.unit]) is not None:
        return True
    return value_of(text, column.type) is not None and is_whole_of(text, column.type)


def value_of(text: str, kind: str, zone: tzinfo = UTC) -> Any:
    """The value, as Arrow takes it: times in microseconds and dates in days since 1970. A text and its like are themselves."""
    if kind.startswith("decimal"):
        return _decimal(text, *map(int, re.findall(r"\d+", kind)))
    if kind == "timestamp":
        return micros_of(text, zone)
    make = KINDS.get(kind)
    if make is None and is_nested(kind):
        return nested_value_of(text, kind)[0]
    return text if make is None else make(text)


def is_whole_of(text: str, kind: str) -> bool:
    """Whether the value that this text has in the column gives the text's number back: a double may only be near it."""
    plain = text.strip(BLANK)
    if is_nested(kind):
        return nested_value_of(text, kind)[1]
    return (
        kind not in ("double", "float")
        or NOT_FINITE.fullmatch(plain) is not None
        or is_exact(plain, single=kind == "float")
    )


class _NoValue(Exception):
    """A part is not of its type."""


def nested_value_of(text: str, kind: str) -> tuple[Any, bool]:
    """The array or the struct, and whether it says all that the text does."""
    try:
        value = read_json(text, object_pairs_hook=no_key_twice)
    except ValueError:
        return None, False
    return (None, False) if value is None else nested_value(value, kind)


def nested_value(value: Any, kind: str) -> tuple[Any, bool]:
    """The same of a value that was read already."""
    try:
        return _part(value, parts_of(kind))
    except _NoValue:
        return None, False


def _part(value: Any, kind: ColumnType) -> tuple[Any, bool]:
    """Null is null in every type, and a field that is missing is null."""
    if value is None:
        return None, True
    if isinstance(kind, ArrayOf):
        if type(value) is not list:
            raise _NoValue
        parts = [_part(element, kind.of) for element in value]
        return [made for made, _ in parts], all(whole for _, whole in parts)
    if isinstance(kind, StructOf):
        return _members_of(value, kind)
    text = text_of_field(value)
    made = None if text is None else value_of(text, kind)
    if made is None or text is None:
        raise _NoValue
    return made, is_whole_of(text, kind)


def _members_of(value: Any, kind: StructOf) -> tuple[dict[str, Any], bool]:
    if type(value) is not dict:
        raise _NoValue
    keys = {name: taken_key(value, name) for name in kind.fields}
    parts = {name: (None, True) if key is None else _part(value[key], kind.fields[name]) for name, key in keys.items()}
    left = value.keys() - keys.values()
    whole = all(whole for _, whole in parts.values()) and all(value[key] is None and is_text(key) for key in left)
    return {name: made for name, (made, _) in parts.items()}, whole


def _whole(text: str, kind: str) -> int | None:
    plain = text.strip(CONTROL)
    if WHOLE.fullmatch(plain) is None or len(plain) > LONGEST_WHOLE:
        return None
    most = 1 << BITS[kind]
    return int(plain) if -most <= int(plain) < most else None


def _double(text: str) -> float | None:
    """The nearest one; a number beyond all doubles is none."""
    plain = text.strip(BLANK)
    if NOT_FINITE.fullmatch(plain):
        return float(plain)
    held = float(plain) if decimal_of(plain) is not None else math.inf
    return held if math.isfinite(held) else None


def _float(text: str) -> float | None:
    held = _double(text)
    with np.errstate(over="ignore"):
        single = None if held is None else float(np.float32(held))
    return None if single is None or (math.isinf(single) and not math.isinf(held or 0)) else single


def _decimal(text: str, digits: int, scale: int) -> Decimal | None:
    """Nothing is rounded."""
    number = decimal_of(text)
    try:
        made = None if number is None else number.quantize(Decimal(1).scaleb(-scale), context=WIDE)
    except InvalidOperation:
        return None
    return made if made is not None and made == number and made.adjusted() < digits - scale else None


def _boolean(text: str) -> bool | None:
    plain = text.strip(CONTROL).lower()
    return plain in YES if plain in YES | NO else None


def _members(text: str) -> list[tuple[str, str | None]] | None:
    """The members of an object, each with the text of its value; None for anything else, and where a key or a value has half a
    surrogate pair."""
    try:
        read = read_json(text)
    except ValueError:
        return None
    if type(read) is not dict:
        return None
    made = [(text_of_field(key), value, text_of_field(value)) for key, value in read.items()]
    if any(key is None or (text is None and value is not None) for key, value, text in made):
        return None
    return [(key, text) for key, _, text in made if key is not None]


KINDS: dict[str, Callable[[str], Any]] = {
    **{kind: lambda text, kind=kind: _whole(text, kind) for kind in BITS},  # type: ignore[misc]
    "double": _double,
    "float": _float,
    "boolean": _boolean,
    "date": day_of,
    "map": _members,
    "binary": str.encode,
    "timestamp_ntz": local_micros_of,
}


def _is_of_format(text: str, pattern: str) -> bool:
    parts = re.findall(r"'[^']*'|([A-Za-z])(\1*)|[^A-Za-z']+", pattern)
    letters = ["".join(part) for part in parts if part[0]]
    if any(letter not in LETTERS for letter in letters):
        return True
    strptime_format = re.sub(r"'([^']*)'|([A-Za-z])\2*", lambda m: m[1] if m[2] is None else LETTERS[m[0]], pattern)
    try:
        datetime.strptime(text, strptime_format)
    except ValueError:
        return False
    return True
