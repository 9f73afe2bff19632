"""Finds fields of a table that look personal, in some of its rows, including `_rescued` and held records.

In: a view of the lake, and a table. Out: a `Scan`, with a `Likeness` for each field and kind. No value leaves this module.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from forebay.declaration.path import Path
from forebay.lake.layout import PARKED, QUARANTINE
from forebay.operate.lake_view import LakeView, known_table
from forebay.privacy.likeness import Kind, kind_of
from forebay.record.walk import rescued_records

OF_JSON = ("_rescued", "_record", "record")
"""Columns that hold a record, or a part of it, as text."""
OUR_IDS = ("_file_id", "file_id", "generation")
"""Columns that name the file or the batch of a row."""
ASIDE = {own.rpartition("/")[2]: own for own in (QUARANTINE, PARKED)}
FEW_PERCENT = 5
SURE: tuple[Kind, ...] = ("e-mail address", "card number")
"""One such value is worth a check; of other kinds, a few match by chance."""

Keys = tuple[str, ...]


@dataclass(frozen=True)
class Likeness:
    """`values` of the field looked like this kind, of all `of` that were looked at."""

    column: str
    field: str
    kind: Kind
    values: int
    of: int


@dataclass(frozen=True)
class Scan:
    """The result of this many rows; the most frequent first."""

    rows: int
    found: tuple[Likeness, ...]


def scanned(view: LakeView, table: str, rows: int) -> Scan:
    """`table` may be quarantine or parked, too."""
    place = ASIDE.get(table) or known_table(view, table)
    counted: Counter[tuple[str, Keys, Kind]] = Counter()
    all_of: Counter[tuple[str, Keys]] = Counter()
    looked_at = view.query(place, f"select * from t limit {rows}")
    for row in looked_at:
        for column, keys, value in _values_of(row):
            all_of[column, keys] += 1
            if (kind := kind_of(value)) is not None:
                counted[column, keys, kind] += 1
    found = [
        Likeness(column, str(Path("record", keys)), kind, count, all_of[column, keys])
        for (column, keys, kind), count in counted.items()
        if kind in SURE or 100 * count >= FEW_PERCENT * all_of[column, keys]
    ]
    return Scan(len(looked_at), tuple(sorted(found, key=lambda one: (-one.values / one.of, one.column, one.field))))


def _values_of(row: Mapping[str, Any]) -> Iterator[tuple[str, Keys, Any]]:
    """The column of each value, and its path in the record: in a column of its own that begins with the column."""
    for column, value in row.items():
        if column in OUR_IDS or value is None:
            continue
        if column in OF_JSON:
            yield from ((column, keys, inner) for keys, inner in _inside(_parsed(value), ()))
        else:
            yield from ((column, keys, inner) for keys, inner in _inside(value, (column,)))


def _parsed(text: str) -> Any:
    """A text that is not JSON was refused, or its personal fields could not be found: it is examined as text."""
    try:
        return json.loads(rescued_records(text)[0], parse_float=float)
    except ValueError:
        return {"": text}


def _inside(value: Any, keys: Keys) -> Iterator[tuple[Keys, Any]]:
    """Elements of an array have the place of the array."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _inside(inner, (*keys, key))
    elif isinstance(value, list | tuple):
        for element in value:
            yield from _inside(element, keys)
    elif value is not None and keys:
        yield keys, value
