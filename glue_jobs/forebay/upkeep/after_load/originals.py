"""Duplicates whose object may be the only copy of records that are in no table: those of the version with the same bytes.

In: the ledger, and which rows are lost. Out: the keys of these duplicates. A bucket without versions has only the last object
of a key, and one with versions keeps the earlier ones for some days. The ledger is read twice, and only if a duplicate is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow.compute as pc

from forebay.lake.objects import Objects
from forebay.lake.rows import python_rows
from forebay.ledger.data_files import data_files, plainly_typed
from forebay.ledger.versions import LOADED
from forebay.upkeep.after_load.due import COLUMNS, is_clear

DUPLICATE = "duplicate"
Key = tuple[str, str]


def keys_of_needed_duplicates(ledger: Objects, are_lost: Callable[[Mapping[str, Any]], bool]) -> frozenset[Key]:
    keys = {row["key"] for row in _rows(ledger, pc.field("outcome") == DUPLICATE)}
    versions = _rows(ledger, pc.field("key").isin(sorted(keys)) & pc.field("outcome").isin(LOADED))
    return frozenset((row["bucket"], row["key"]) for row in versions if not is_clear(row) or are_lost(row))


def _rows(ledger: Objects, which: pc.Expression) -> Iterator[Mapping[str, Any]]:
    for parquet in data_files(ledger):
        yield from python_rows(plainly_typed(parquet.read(columns=list(COLUMNS))).filter(which))
