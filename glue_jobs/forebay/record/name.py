"""The name that a field's values get as a column: small letters, digits and underscores, for every reader alike.

Enters: a key of a JSON object, any text. Leaves: a name. It is a function of the key alone, so it does not matter which
record came first. Keys that get the same name are *twins* and share a column.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

__all__ = ["LONGEST", "TwinValue", "free_name", "safe_name"]

LONGEST = 120
"""Glue and Athena take 255 bytes; a struct's path of several names should fit as well."""


@dataclass(frozen=True)
class TwinValue:
    """A value whose key is a twin of one that a declared column is read from: it has no column, and is rescued."""

    value: Any


@lru_cache(maxsize=100_000)
def safe_name(key: str) -> str:
    """`Player Name` becomes `player_name`; names that begin with an underscore are forebay's own, so `_id` becomes `x_id`."""
    name = re.sub(r"[^\w]", "_", key.lower()) or "empty"
    if not name.isascii():
        name = re.sub(r"[^a-z0-9_]", "_", name)
        name = f"{name}_{_mark(key.lower())}"  # else all names of one length in another script would be twins
    if name[0] == "_" or name[0].isdigit():
        name = f"x{name}" if name[0] == "_" else f"x_{name}"
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 9]}_{_mark(key.lower())}"


def free_name(name: str, taken: Collection[str]) -> str:
    """A column's name beside those that are declared: they are known before the first record, so it is always the same."""
    while name in taken:
        name += "_field"
    return name


def _mark(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "backslashreplace")).hexdigest()[:8]
