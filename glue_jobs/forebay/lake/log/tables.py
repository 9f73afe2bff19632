"""Lists the tables of a lake."""

from __future__ import annotations

from collections.abc import Iterator

from forebay.lake.layout import OWN_TABLES, TOMBSTONES
from forebay.lake.log.listing import LOG
from forebay.lake.objects import open_objects


def tables_of(lake: str) -> list[str]:
    """The names of all tables but our own."""
    return [name for name in open_objects(lake).folders() if not name.startswith(("_", "."))]


def own_tables(lake: str) -> Iterator[str]:
    """Those of our own tables that there are."""
    objects = open_objects(lake)
    tombstones = (f"{TOMBSTONES}/{state}" for state in open_objects(f"{lake}/{TOMBSTONES}").folders())
    for name in (*OWN_TABLES, *tombstones):
        if next(iter(objects.found(f"{name}/{LOG}")), None) is not None:
            yield name
