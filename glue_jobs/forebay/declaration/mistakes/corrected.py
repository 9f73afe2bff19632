"""A declaration without its wrong settings, so that the rest can be checked too.

In: a declaration, the locations of its mistakes, and the intended values. Out: a copy without the mistakes, and the names of
the columns that lost something. No job uses such a copy: it only finds further mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from forebay.refusal import Location

TOGETHER = {"merge": ("mode",), "mode": ("merge",)}
"""Settings that make no sense without each other."""


def without_mistakes(given: Any, wrong: Mapping[Location, str | None]) -> tuple[Any, set[str]]:
    """`wrong` has the value that was meant, where that is known."""
    left, damaged = deepcopy(given), set()
    # Values first: another mistake of the same section removes all of it.
    for location, meant in sorted(wrong.items(), key=lambda one: one[1] is None):
        if location[:1] == ("columns",) and len(location) > 1:
            damaged.add(_correct_column(left["columns"], int(location[1])))
        elif meant is not None:
            _around(left, location)[location[-1]] = meant
        else:
            _remove(left, location)
    if isinstance(left, dict) and isinstance(left.get("columns"), list):
        left["columns"] = [column for column in left["columns"] if column is not None]
    return left, damaged - {""}


def mentions(text: str, names: Iterable[str]) -> bool:
    return any(re.search(rf"\b{re.escape(name)}\b", text) for name in names)


def _correct_column(columns: list[Any], at: int) -> str:
    """The column's name, if it has one."""
    name = columns[at].get("name") if isinstance(columns[at], dict) else None
    plain = isinstance(name, str) and re.fullmatch(r"[A-Za-z]\w*", name)
    columns[at] = {"name": name} if plain else None
    return name if isinstance(name, str) else ""


def _remove(left: Any, location: Location) -> None:
    """Removes the section's whole setting: a list or a table without some part may mean something else."""
    if location and isinstance(left, dict):
        for name in (location[0], *TOGETHER.get(str(location[0]), ())):
            left.pop(name, None)


def _around(left: Any, location: Location) -> Any:
    for step in location[:-1]:
        left = left[step]
    return left
