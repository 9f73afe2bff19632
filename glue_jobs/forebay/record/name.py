"""Names columns of undeclared fields.

In: a name, and those that are taken. Out: a free one. `TwinValue` is what gets no column.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TwinValue:
    """A value whose key is a twin of one that a declared column is read from: it has no column, and is rescued."""

    value: Any


def is_text(key: str) -> bool:
    """Half of a pair of surrogates is JSON, but no text that a schema can hold: a field with such a key is rescued."""
    return key.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in key)


def free_name(name: str, taken: Collection[str]) -> str:
    """A column's name beside those that are declared: they are known before the first record, so it is always the same."""
    while name in taken:
        name += "_field"
    return name
