"""The name that a field's values get as a column: small letters, digits and underscores, for every reader alike.

In: a key of a JSON object, any text. Out: a name. It depends on the key alone, so it does not matter which record came first.
Keys that get the same name are *twins* and share a column.
"""

from __future__ import annotations

import hashlib
import re

from forebay.remembered import remembered

__all__ = ["LONGEST", "safe_name"]

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
