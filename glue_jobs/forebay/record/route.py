"""The table of one record, in plain Python.

In: a service, a record as `field` gives it (or the texts of the fields that decide), and what is known of its object. Out: its
`Route`: written to a table by the declaration that owns the table's name, parked because no declaration wants it, refused
because a value may not name a table, or dropped: an element of an exploded array that no table wants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from forebay.declaration import object_key
from forebay.declaration.column import path_in_record
from forebay.declaration.form import EXPLODED, ORDINAL
from forebay.declaration.path import parse_path
from forebay.declaration.table import RESERVED
from forebay.record.field import text_at

if TYPE_CHECKING:
    from forebay.declaration.service import Service
    from forebay.declaration.table import Table

NO_FOLDER = re.compile(r"[\x00-\x1f/]")

Texts = Callable[[str], str | None]
"""The text of the field at a path."""


@dataclass(frozen=True)
class Origin:
    """The object that a record came in."""

    key: str = ""
    bucket: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Route:
    """`declared` is the number of the declaration that owns the table: of all that can make its name, the first
    (`Service.owners`). It may be another than the one that wanted the record. Of a record that is refused, it is that one."""

    fate: Literal["write", "park", "quarantine", "drop"]
    table: str | None = None
    declared: int | None = None
    reason: str | None = None


def route_of(service: Service, record: Any, origin: Origin) -> Route:
    """The first declaration that wants the record decides. `where_sql` is taken to hold: only Spark evaluates SQL."""
    return route_by(service, lambda path: text_of(service, path, record, origin))


def route_by(service: Service, text: Texts, holds: Callable[[int], bool] = lambda number: True) -> Route:
    """The same, of the texts of the fields that decide. `holds` says whether the SQL of a declaration does."""
    array = _array_of(service, text)
    for number, table in enumerate(service.tables):
        if _wants(table, text, array) and (table.where_sql is None or holds(number)):
            name = _name_of(table, text)
            if name is None:
                return Route("quarantine", declared=number, reason="bad-table-name")
            owner = service.owner_of(name)
            return Route("write", name, number if owner is None else owner)
    return Route("drop" if array in service.exploded else "park")


def deciding_paths(service: Service) -> list[str]:
    """The fields that decide about a record's table, in order."""
    marks = {EXPLODED, ORDINAL} if service.exploded else set()
    return sorted(marks.union(*((*table.fields, *table.where) for table in service.tables)))


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
        of_file = {"key": origin.key, "file": origin.key.rpartition("/")[2], "bucket": origin.bucket}
        return (of_file | {"feed": feed.name if feed else ""})[name] or None
    if feed is None or name not in object_key.names(feed.key):
        return None
    found = re.match(object_key.pattern(feed.key), origin.key)
    return found[object_key.names(feed.key).index(name) + 1] if found else None


def _array_of(service: Service, text: Texts) -> str | None:
    """The exploded array that the record lay in. Two fields say so: a record may have one of them by chance."""
    return text(EXPLODED) if service.exploded and text(ORDINAL) is not None else None


def _wants(table: Table, text: Texts, array: str | None) -> bool:
    if array != table.explode:
        return False
    if any(text(path) is None for path in table.fields):
        return False
    return all(condition.holds(text(path)) for path, condition in table.where.items())


def _name_of(table: Table, text: Texts) -> str | None:
    """None where a value may not name a table, or its state."""
    texts = {path: text(path) or "" for path in table.fields}
    if any(re.fullmatch(table.values, one, re.ASCII) is None for one in texts.values()):
        return None
    names = [_filled(pattern, texts) for pattern in (table.name, *([table.merge.into] if table.merge else ()))]
    return names[0] if not table.fields or all(map(_may_be_a_folder, names)) else None


def _filled(pattern: str, texts: Mapping[str, str]) -> str:
    return re.sub(r"\{([^{}]*)\}", lambda field: texts[path_in_record(field[1])], pattern)


def _may_be_a_folder(name: str) -> bool:
    """However wide a declared pattern is: folders that begin so are hidden to Delta, or forebay's own. A slash names a folder
    anywhere."""
    return name not in RESERVED and name[:1] not in ("_", ".", "") and NO_FOLDER.search(name) is None
