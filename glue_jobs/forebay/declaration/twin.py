"""Finds the key of an object that a declared step of a path means: the one with that spelling, or a twin of it.

Twins differ only in case and signs: their values would share one column.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from forebay.remembered import remembered

__all__ = ["family_of", "is_twin", "taken_key"]


def taken_key(keys: Collection[str], declared: str) -> str | None:
    """The key of an object from which a declared field is read: the one with this spelling, else the first of its twins."""
    if declared in keys:
        return declared
    folded = _folded(declared)
    return None if folded is None else min((key for key in keys if _folded(key) == folded), default=None)


def family_of(key: str) -> str:
    """The text that a key shares with its twins alone."""
    return _folded(key) or key


@remembered
def _folded(key: str) -> str | None:
    return re.sub(r"[^a-z0-9]", "_", key.lower()) if key.isascii() else None


def is_twin(key: str, other: str) -> bool:
    """Whether a declared `key` also means `other`, or the reverse."""
    return _folded(key) is not None and _folded(key) == _folded(other)
