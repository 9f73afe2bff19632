"""A table's columns, and how they came to be, from its log alone.

In: a view of the lake, and a table. Out: each column with its type and the keys that it is read from; and the changes of its
columns, as far back as the log goes (Delta forgets commits after `delta.logRetentionDuration`, 30 days as a rule).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from forebay.errors import Misdeclared
from forebay.objects import Objects
from forebay.operate.lake_view import LakeView
from forebay.record.kind import SPELLED

__all__ = ["Change", "TableColumn", "columns_of", "history_of"]


@dataclass(frozen=True)
class TableColumn:
    """`path` is dotted, with [] for an array's elements; `keys` are spelled as in the records, where that is not the name."""

    path: str
    type: str
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Change:
    """What a version of the table changed about its columns."""

    version: int
    at: datetime
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]


def columns_of(view: LakeView, table: str) -> list[TableColumn]:
    found = view.table(table)
    if found is None:
        raise Misdeclared.one(f"table {table}", f"is not in {view.lake}")
    return list(_leaves("", json.loads(found.schema().to_json())))


def history_of(table: Objects) -> list[Change]:
    """The oldest first. `table` is the table's folder."""
    before: dict[str, str] = {}
    changes = []
    for found in table.found("_delta_log/"):
        name = found.name.rpartition("/")[2]
        if not (name.endswith(".json") and name[:20].isdigit() and len(name) == 25):
            continue
        actions = [json.loads(line) for line in (table.read(found.name) or b"").splitlines() if b"metaData" in line]
        for action in actions:
            if "metaData" in action:
                after = {c.path: c.type for c in _leaves("", json.loads(action["metaData"]["schemaString"]))}
                change = _change(int(name[:20]), found.modified, before, after)
                if change.added or change.changed or change.removed:
                    changes.append(change)
                before = after
    return changes


def _change(version: int, at: datetime, before: Mapping[str, str], after: Mapping[str, str]) -> Change:
    changed = (f"{path} {before[path]} -> {kind}" for path, kind in after.items() if before.get(path, kind) != kind)
    return Change(
        version,
        at.astimezone(UTC),
        tuple(f"{path} {kind}" for path, kind in after.items() if path not in before),
        tuple(changed),
        tuple(path for path in before if path not in after),
    )


def _leaves(path: str, kind: Any, keys: tuple[str, ...] = ()) -> Iterator[TableColumn]:
    if isinstance(kind, dict) and kind["type"] == "struct":
        for field in kind["fields"]:
            inner = f"{path}.{field['name']}".lstrip(".")
            yield from _leaves(inner, field["type"], tuple((field.get("metadata") or {}).get(SPELLED, ())))
    elif isinstance(kind, dict) and kind["type"] == "array":
        yield from _leaves(f"{path}[]", kind["elementType"], keys)
    elif isinstance(kind, dict):
        yield TableColumn(path, f"map<{kind['keyType']}, {kind['valueType']}>", keys)
    else:
        yield TableColumn(path, kind, keys)
