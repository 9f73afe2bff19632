"""Tables that an operator paused: one small object for each, under `_forebay/`.

In: names of tables, or `ALL`. Out: the set that is paused now. Pausing or resuming a table twice changes nothing. A batch pins
the set with its declarations, so that a replay uses the same one.
"""

from __future__ import annotations

from collections.abc import Iterable

from forebay.lake.layout import PAUSED
from forebay.lake.objects import open_objects

ALL = "_all"
"""Stands for every table. No table's name begins so."""


def paused_tables(lake: str) -> frozenset[str]:
    """Their names; `ALL` may be among them."""
    return frozenset(open_objects(lake).names(PAUSED))


def pause(lake: str, tables: Iterable[str]) -> None:
    objects = open_objects(lake)
    for table in tables:
        objects.write(f"{PAUSED}/{table}", b"")


def resume(lake: str, tables: Iterable[str]) -> None:
    open_objects(lake).delete(f"{PAUSED}/{table}" for table in tables)
