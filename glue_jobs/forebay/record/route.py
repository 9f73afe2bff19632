"""The table of one record, in plain Python: the definition of what `batch.routing` has Spark do for a batch.

In: a service, a record as `field` gives it, and what is known of its object. Out: its `Route`: written to a table, parked
because no declaration wants it, refused because a value may not name a table, or dropped: an element of an exploded array that
no table wants.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from forebay.declaration import object_key
from forebay.declaration.form import EXPLODED, ORDINAL
from forebay.declaration.path import parse_path
from forebay.record.field import text_at

if TYPE_CHECKING:
    from forebay.declaration.service import Service
    from forebay.declaration.table import Table

__all__ = ["Origin", "Route", "route_of", "text_of"]


@dataclass(frozen=True)
class Origin:
    """The object that a record came in."""

    key: str = ""
    bucket: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Route:
    """`declared` is the number of the declaration that made the table."""

    fate: Literal["write", "park", "quarantine", "drop"]
    table: str | None = None
    declared: int | None = None
    reason: str | None = None


def route_of(service: Service, record: Any, origin: Origin) -> Route:
    """The first declaration that wants the record decides. `where_sql` is taken to hold: only Spark evaluates SQL."""
    for number, table in enumerate(service.tables):
        if _wants(service, table, record, origin):
            name = _name_of(service, table, record, origin)
            if name is None:
                return Route("quarantine", declared=number, reason="bad-table-name")
            return Route("write", name, number)
    return Route("drop" if _array_of(service, record) in service.exploded else "park")


def text_of(service: Service, path: str, record: Any, origin: Origin) -> str | None:
    """A field of the record, or of its object, as text."""
    wanted = parse_path(path)
    if wanted.of_record:
        return text_at(record, wanted)
    name = str(wanted.steps[0])
    if wanted.origin == "metadata":
        return origin.metadata.get(name) or None
    feed = service.feed_of(origin.bucket, origin.key)
    if wanted.origin == "object":
        said = {"key": origin.key, "file": origin.key.rpartition("/")[2], "bucket": origin.bucket}
        return (said | {"feed": feed.name if feed else ""})[name] or None
    if feed is None or name not in object_key.names(feed.key):
        return None
    found = re.match(object_key.pattern(feed.key), origin.key)
    return found[object_key.names(feed.key).index(name) + 1] if found else None


def _array_of(service: Service, record: Any) -> str | None:
    """The exploded array that the record lay in. Two fields say so: a record may have one of them by chance."""
    if not service.exploded or text_at(record, parse_path(ORDINAL)) is None:
        return None
    return text_at(record, parse_path(EXPLODED))


def _wants(service: Service, table: Table, record: Any, origin: Origin) -> bool:
    if _array_of(service, record) != table.explode:
        return False
    if any(text_of(service, path, record, origin) is None for path in table.fields):
        return False
    return all(condition.holds(text_of(service, path, record, origin)) for path, condition in table.where.items())


def _name_of(service: Service, table: Table, record: Any, origin: Origin) -> str | None:
    """None where a value may not name a table."""
    texts = {path: text_of(service, path, record, origin) or "" for path in table.fields}
    if any(re.fullmatch(table.values, text) is None for text in texts.values()):
        return None
    values = iter(texts[path] for path in table.fields)
    return re.sub(r"\{[^{}]*\}", lambda _: next(values), table.name)
