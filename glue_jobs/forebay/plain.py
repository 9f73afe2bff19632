"""A dataclass as a dictionary, for JSON. `dataclasses.asdict` also copies each value, however simple, and takes ten times as
long."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

__all__ = ["plain"]


def plain(one: Any) -> dict[str, Any]:
    """The values themselves, by the names of their fields."""
    return {name: getattr(one, name) for name in _names(one.__class__)}


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
