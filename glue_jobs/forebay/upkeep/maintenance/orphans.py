"""Data files that no log knows of: left by writers that died before their commit, and by tables that were dropped.

In: a table's objects, or a folder that is no table. Out: what is found, and nothing is deleted here. Files younger than
`not_before` are passed over, because whoever is writing them may still commit. What the log names as removed is no orphan:
older versions need it, and VACUUM takes it when they are past.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from forebay.lake.log.listing import CHECKPOINT, COMMIT, LOG, list_log
from forebay.lake.objects import Found, Objects

__all__ = ["orphans_of", "remains_of"]

DATA = (".parquet",)


def orphans_of(table: Objects, *, not_before: datetime) -> list[Found]:
    """The files are listed before the log is read: one that is committed meanwhile is known."""
    old = [f for f in table.found() if _is_data(f.name) and f.modified < not_before]
    if not old:
        return []
    known = set(_known(table))
    return [f for f in old if f.name not in known]


def remains_of(folder: Objects, *, not_before: datetime) -> list[Found]:
    """All data files of a folder without a log; none where one of them is young."""
    found = list(folder.found())
    if any(f.name.startswith(LOG) or f.modified >= not_before for f in found):
        return []
    return [f for f in found if _is_data(f.name)]


def _is_data(name: str) -> bool:
    hidden = any(part.startswith(("_", ".")) and "=" not in part for part in name.split("/"))
    return name.endswith(DATA) and not hidden


def _known(table: Objects) -> Iterator[str]:
    """Every path that the log names, in whatever version of it that is still there."""
    listing = list_log(table, whole=True)
    for found in table.found(LOG):
        if COMMIT.fullmatch(found.name):
            for line in (table.read(found.name) or b"").splitlines():
                yield from _named(json.loads(line)) if line.startswith((b'{"add"', b'{"remove"')) else ()
        elif CHECKPOINT.fullmatch(found.name) and found.name in listing.checkpoint:
            content = pq.ParquetFile(pa.BufferReader(table.read(found.name)))
            for name in ("add", "remove"):
                for action in content.read(columns=[f"{name}.path"])[name].to_pylist():
                    yield from _named({name: action})


def _named(action: dict[str, dict[str, str] | None]) -> Iterator[str]:
    for named in action.values():
        if named and named.get("path"):
            yield unquote(named["path"])
