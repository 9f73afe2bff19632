"""A table's columns and their history, from its log alone.

In: the table's log. Out: each column with its type and the keys that it is read from. Also how one
definition of the table differs from another, as far back as the log goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from forebay.lake.log.definition import Definition, TableHistory
from forebay.record.kind import JSON, SPELLED


@dataclass(frozen=True)
class TableColumn:
    """`path` is dotted, with [] for an array's elements; `keys` are spelled as in the records, where that is not the name."""

    path: str
    type: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Difference:
    """The columns that were added, changed and removed, and the new partitions, if they changed."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    partitions: str = ""

    def lines(self) -> Iterator[str]:
        """The lines of a difference, for people."""
        for sign, what in (("+", self.added), ("~", self.changed), ("-", self.removed)):
            yield from (f"{sign} {one}" for one in what)
        if self.partitions:
            yield f"~ partitions: {self.partitions}"

    def __bool__(self) -> bool:
        return self != Difference()


@dataclass(frozen=True)
class Change:
    """The changes of one version of a table. The `oldest` version that the log knows has all columns: earlier ones are
    unknown, if there were any."""

    version: int
    at: datetime
    difference: Difference
    oldest: bool


def columns_of(table: Definition) -> list[TableColumn]:
    return list(_leaves("", table.schema))


def changes_of(history: TableHistory) -> list[Change]:
    """The oldest first."""
    first, *_ = history.definitions
    begun = Difference(added=tuple(f"{c.path} {c.type}" for c in columns_of(first)), partitions=_partitions(first))
    changes = [Change(first.version, first.at, begun, oldest=True)]
    for before, after in pairwise(history.definitions):
        if found := difference(before, after):
            changes.append(Change(after.version, after.at, found, oldest=False))
    return changes


def before_last_change(history: TableHistory, version: int) -> int:
    """The version before the one that gave the table the columns that it has in `version`; the oldest where none is known."""
    changed = [change.version for change in changes_of(history) if change.version <= version and not change.oldest]
    return changed[-1] - 1 if changed else history.oldest


def difference(before: Definition, after: Definition) -> Difference:
    had, has = ({c.path: c.type for c in columns_of(one)} for one in (before, after))
    moved = before.partition_columns != after.partition_columns
    return Difference(
        tuple(f"{path} {kind}" for path, kind in has.items() if path not in had),
        tuple(f"{path} {had[path]} -> {kind}" for path, kind in has.items() if had.get(path, kind) != kind),
        tuple(path for path in had if path not in has),
        f"{_partitions(before) or 'none'} -> {_partitions(after) or 'none'}" if moved else "",
    )


def type_name(kind: Any) -> str:
    """From Delta's JSON of a type: as in a declaration."""
    if isinstance(kind, str):
        return "int" if kind == "integer" else kind
    if kind["type"] == "map":
        return f"map<{type_name(kind['keyType'])}, {type_name(kind['valueType'])}>"
    if kind["type"] == "array":
        return f"array<{type_name(kind['elementType'])}>"
    fields = (f"{field['name']}:{type_name(field['type'])}" for field in kind["fields"])
    return f"struct<{','.join(fields)}>"


def _partitions(table: Definition) -> str:
    return ", ".join(table.partition_columns)


def _leaves(path: str, kind: Any, keys: tuple[str, ...] = ()) -> Iterator[TableColumn]:
    if isinstance(kind, Mapping) and kind["type"] == "struct":
        for field in kind["fields"]:
            inner = f"{path}.{field['name']}".lstrip(".")
            metadata = field.get("metadata") or {}
            if metadata.get(JSON):
                yield TableColumn(inner, "string (JSON: an object with many keys)", tuple(metadata.get(SPELLED, ())))
            else:
                yield from _leaves(inner, field["type"], tuple(metadata.get(SPELLED, ())))
    elif isinstance(kind, Mapping) and kind["type"] == "array":
        yield from _leaves(f"{path}[]", kind["elementType"], keys)
    else:
        yield TableColumn(path, type_name(kind), keys)
