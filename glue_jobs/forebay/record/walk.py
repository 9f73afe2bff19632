"""One record at a time: the values for its table's columns, and the values that do not fit. This is the definition; `swift` is
the same for thousands of ordinary records at once.

In: a record as text, the table's columns, the rules. Out: a value for each column, and what is rescued. That is the parts of
the record that did not fit, nested as in the record, under its own keys. A record that Python cannot read although Spark
could, is rescued whole, as text under the empty key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from forebay.declaration.column_name import family_of, safe_name, taken_key
from forebay.record.growth import Rules
from forebay.record.kind import Kind, Many, Struct
from forebay.record.name import TwinValue, free_name, is_text
from forebay.record.number import Written, is_exact, no_key_twice, read_json, write_json
from forebay.record.shape import LONG_MAX, LONG_MIN

NOTHING: Any = object()
"""Stands for `there is nothing to rescue`, where null would be something."""

WHOLE = ""
RESCUED_WHOLE = r'^\{"":'
"""A regular expression for texts in `_rescued` that may hold a record whole."""


class Unreadable(dict[str, Any]):
    """A record whose text only Spark could read; all of it is under one key."""


def parsed(text: str, rules: Rules) -> dict[str, Any]:
    """The fields of a record that nobody has read yet."""
    try:
        record = read_json(text, object_pairs_hook=no_key_twice)
        if rules.declared:
            record = undeclared(record, rules.declared)
        return flattened(record, rules.flatten, rules.depth) if rules.flatten is not None else record
    except ValueError:
        return Unreadable({WHOLE: text.rstrip()})


def undeclared(record: dict[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Without the fields that are read elsewhere. An object with nothing left but nulls is gone."""
    taken = {taken_key(record, name): nested for name, nested in declared.items()}
    families = {*map(family_of, declared)}
    left: dict[str, Any] = {}
    for key, value in record.items():
        nested = taken.get(key)
        if nested is None:
            twin = value is not None and key.isascii() and family_of(key) in families
            left[key] = TwinValue(value) if twin else value
        elif nested and isinstance(value, dict):
            rest = undeclared(value, nested)
            if any(inner is not None for inner in rest.values()):
                left[key] = rest
        elif nested and value is not None:
            left[key] = value
    return left


def flattened(record: dict[str, Any], separator: str, depth: int) -> dict[str, Any]:
    """Objects become fields beside each other: {"a": {"b": 1}} becomes {"a_b": 1}. Raises `ValueError` where two fields would
    become one."""
    pairs: list[tuple[str, Any]] = []
    for key, value in record.items():
        if isinstance(value, dict) and depth > 0:
            inner = flattened(value, separator, depth - 1)
            pairs += [(f"{key}{separator}{name}", leaf) for name, leaf in inner.items()]
        else:
            pairs.append((key, value))
    return no_key_twice(pairs)


def conformed(record: dict[str, Any], columns: Struct, rules: Rules) -> tuple[dict[str, Any], Any]:
    """The columns' values, and what is rescued (`NOTHING` mostly)."""
    if isinstance(record, Unreadable):
        return {}, dict(record)
    value, rescued = _object(record, columns, rules.depth + 1, rules.reserved)
    return value, NOTHING if rules.undeclared == "ignore" else rescued


def rescued_text(rescued: Any) -> str | None:
    """The text for `_rescued`."""
    return None if rescued is NOTHING else write_json(rescued)


def rescued_whole(text: str) -> str | None:
    """The record, of a text in `_rescued` that holds it whole. Beside it may be values that did not fit declared columns."""
    try:
        held = read_json(text) if re.match(RESCUED_WHOLE, text) else {}
    except (ValueError, RecursionError):
        return None
    whole = held.get(WHOLE)
    return whole if isinstance(whole, str) and whole.lstrip().startswith("{") else None


def rescued_records(text: str) -> list[str]:
    """The record that a text in `_rescued` holds whole, and the text itself: a record may have an empty key to hide others."""
    whole = rescued_whole(text)
    return [text] if whole is None else [whole, text]


def text_of(value: Any) -> str:
    """A value in a column of text. Texts and numbers keep their digits. Everything else is JSON with its keys in
    order, so the same value is always the same text."""
    return value if isinstance(value, str) else write_json(value, ascii_only=False, sort=True, bare=True)


def _object(
    record: dict[str, Any], columns: Struct, depth: int, reserved: frozenset[str] = frozenset()
) -> tuple[dict[str, Any], Any]:
    made: dict[str, Any] = {}
    rescued: dict[str, Any] | None = None
    for key, value, name in _without_twins(record, reserved):
        if value is None:
            continue
        column = columns.fields.get(name) if is_text(key) else None
        if type(value) is TwinValue:
            left = value.value
        elif column is None or column.name in made:
            left = NOTHING if value in ({}, []) else value
        else:
            made[column.name], left = _value(value, column.kind, depth - 1)
        if left is not NOTHING:
            rescued = rescued if rescued is not None else {}
            rescued[key] = left
    return made, NOTHING if rescued is None else rescued


def _value(value: Any, kind: Kind, depth: int) -> tuple[Any, Any]:
    """The part that the column takes, and the rest. Structs may nest `depth` deep from here."""
    if isinstance(kind, Struct):
        return _object(value, kind, depth) if isinstance(value, dict) else (None, value)
    if isinstance(kind, Many):
        return _elements(value, kind, depth) if isinstance(value, list) else (None, value)
    if kind in ("string", "json"):
        if value in ([], {}):
            return None, NOTHING
        text, left = _text(value)
        # Text of another type: the value itself is kept beside, unless it is an object that was meant to be text.
        meant = isinstance(value, dict) if kind == "json" else isinstance(value, str)
        return text, left if meant or (isinstance(value, dict) and depth <= 0) else value
    if kind == "long":
        if isinstance(value, Written) and value.is_whole:
            return int(value), NOTHING
        fits = type(value) is int and LONG_MIN <= value <= LONG_MAX
    elif kind == "double":
        return _double(value)
    else:
        fits = kind == "boolean" and isinstance(value, bool)
    return (value, NOTHING) if fits else (None, value)


def _double(value: Any) -> tuple[float | None, Any]:
    """The nearest double; a value that it does not hold exactly is kept beside."""
    if isinstance(value, Written):
        held, exact = float(value), is_exact(value.text)
    elif type(value) is int:
        held = float(value) if abs(value) < 10**300 else math.inf
        exact = math.isfinite(held) and int(held) == value
    else:
        return (value, NOTHING) if isinstance(value, float) else (None, value)
    if exact:
        return held, NOTHING
    return held if math.isfinite(held) else None, value


def _text(value: Any) -> tuple[str | None, Any]:
    text = text_of(value)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair is JSON, but no text
        return None, value
    return text, NOTHING


def _elements(values: list[Any], kind: Many, depth: int) -> tuple[list[Any], Any]:
    """Each element that fits; if one does not, the whole array is rescued besides, since a gap looks like a null."""
    made, spoiled = [], False
    for value in values:
        fit, left = (None, NOTHING) if value is None else _value(value, kind.of, depth)
        made.append(fit)
        spoiled = spoiled or left is not NOTHING
    return made, values if spoiled else NOTHING


def _without_twins(record: dict[str, Any], reserved: frozenset[str]) -> Iterable[tuple[str, Any, str]]:
    """The fields with their names, in their order. Of keys with one name, the first gets the column. That is the key that is
    spelled so: rescued, it would take the place of its twin when the record is put together again. Else it is the one that
    sorts first."""
    fields = [(key, value, free_name(safe_name(key), reserved)) for key, value in record.items()]
    if len({name for _, _, name in fields}) == len(fields):
        return fields
    return sorted(fields, key=lambda field: (field[0] != field[2], field[0]))
