"""Which tables a lake has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from forebay.lake.log.listing import LOG
from forebay.lake.objects import open_objects

__all__ = ["OWN", "own_tables", "tables_of"]

OWN = tuple(f"_forebay/{name}" for name in ("ledger", "quarantine", "parked", "quality", "ids"))
"""The tables that forebay keeps for itself, by their place in the lake."""


def tables_of(lake: str, *, s3: Any = None) -> list[str]:
    """The names of all tables but our own."""
    return [name for name in open_objects(lake, s3=s3).folders() if not name.startswith(("_", "."))]


def own_tables(lake: str, *, s3: Any = None) -> Iterator[str]:
    """Those of our own tables that there are."""
    objects = open_objects(lake, s3=s3)
    for name in OWN:
        if next(iter(objects.found(f"{name}/{LOG}")), None) is not None:
            yield name
