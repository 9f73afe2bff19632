"""The field at a path of one record, in plain Python.

In: a record as `number.read_json` gives it. Out: the field's text; None where there is none, or null, or half of a pair of
surrogates. A key that is spelled as declared comes first, then its twins.
"""

from __future__ import annotations

from typing import Any

from forebay.declaration.column_name import taken_key
from forebay.declaration.path import Path
from forebay.record.number import Written, write_json


def text_at(record: Any, path: Path) -> str | None:
    """The field's text; an object or an array as JSON."""
    return text_of_field(value_at(record, path))


def value_at(record: Any, path: Path) -> Any:
    """None where there is none."""
    found = record
    for step in path.steps:
        found = _behind(found, step)
    return found


def text_of_field(value: Any) -> str | None:
    """A field's text, with its original digits; an object or an array as JSON."""
    if value is None:
        return None
    if type(value) is int:
        return str(value)
    if type(value) is Written:
        return value.text
    text = value if isinstance(value, str) else write_json(value, ascii_only=False, bare=True)
    return text if _is_text(text) else None


def _behind(value: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return value[step] if isinstance(value, list) and step < len(value) else None
    key = taken_key(value, step) if isinstance(value, dict) else None
    return None if key is None else value[key]


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
