"""A bar: what a bench compares, the value of this run, and whether it holds."""

from __future__ import annotations

from typing import Any


def at_most(name: str, value: float, limit: float, *, digits: int = 2) -> dict[str, Any]:
    return {"name": name, "value": round(value, digits), "at_most": limit, "holds": value <= limit}


def at_least(name: str, value: float, limit: float, *, digits: int = 2) -> dict[str, Any]:
    return {"name": name, "value": round(value, digits), "at_least": limit, "holds": value >= limit}
