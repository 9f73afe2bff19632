"""The name that a field's values get as a column: lowercase letters, digits and underscores, for every reader alike.

In: a key of a JSON object, any text. Out: a name. It depends on the key alone, so it does not matter which record came first.
Keys that get the same name are *twins* and share a column. They differ only in case and signs. A declared step of a path means
the key with that spelling, or a twin of it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection

from forebay.remembered import remembered

LONGEST = 120
"""Glue and Athena take 255 bytes; a struct's path of several names should fit as well."""


@remembered
def safe_name(key: str) -> str:
    """`Player Name` becomes `player_name`; names that begin with an underscore are forebay's own, so `_id` becomes `x_id`."""
    name = re.sub(r"[^\w]", "_", key.lower()) or "empty"
    if not name.isascii():
        name = re.sub(r"[^a-z0-9_]", "_", name)
        name = f"{name}_{_mark(key.lower())}"  # else all names of one length in another script would be twins
    if name[0] == "_" or name[0].isdigit():
        name = f"x{name}" if name[0] == "_" else f"x_{name}"
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 9]}_{_mark(key.lower())}"


def _mark(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "backslashreplace")).hexdigest()[:8]


def taken_key(keys: Collection[str], declared: str) -> str | None:
    """The key of an object from which a declared field is read: the one with this spelling, else the first of its twins."""
    if declared in keys:
        return declared
    folded = _folded(declared)
    return None if folded is None else min((key for key in keys if _folded(key) == folded), default=None)


def family_of(key: str) -> str:
    """The text that a key has in common with its twins only."""
    return _folded(key) or key


@remembered
def _folded(key: str) -> str | None:
    return re.sub(r"[^a-z0-9]", "_", key.lower()) if key.isascii() else None


def is_twin(key: str, other: str) -> bool:
    """Whether a declared `key` also means `other`, or the reverse."""
    return _folded(key) is not None and _folded(key) == _folded(other)
