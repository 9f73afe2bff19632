"""Data files that no log knows of: left by writers that died before their commit, and by tables that were dropped.

In: a table's objects, or another folder. Out: the orphans; nothing is deleted here. Files younger than `not_before` are
skipped, because their writer may still commit. A file that the log names as removed is not an orphan: older versions need it,
and VACUUM deletes it later.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from forebay.lake.listed import Listed
from forebay.lake.log.listing import CHECKPOINT, COMMIT, LOG, list_log
from forebay.lake.objects import Objects

DATA = (".parquet",)
DELETED_ROWS = re.compile(r"deletion_vector_[^/]*\.bin")


def orphans_of(table: Objects, *, not_before: datetime) -> list[Listed]:
    """The files are listed before the log is read: one that is committed meanwhile is known."""
    old = [f for f in table.found() if _is_data(f.name) and f.modified < not_before]
    if not old:
        return []
    known = set(_known(table))
    return [f for f in old if f.name not in known]


def unknown_files_of(table: Objects) -> list[str]:
    """Files in a table's folder that no writer of Delta makes. A full VACUUM would delete them without a word."""
    return [f.name for f in table.found() if not (_is_hidden(f.name) or f.name.endswith(DATA) or _deleted_rows(f.name))]


def _deleted_rows(name: str) -> bool:
    return DELETED_ROWS.fullmatch(name.rpartition("/")[2]) is not None


def remains_of(folder: Objects, *, not_before: datetime) -> list[Listed]:
    """All data files of a folder without a log; none where one of them is young."""
    found = list(folder.found())
    if any(f.name.startswith(LOG) or f.modified >= not_before for f in found):
        return []
    return [f for f in found if _is_data(f.name)]


def _is_data(name: str) -> bool:
    return name.endswith(DATA) and not _is_hidden(name)


def _is_hidden(name: str) -> bool:
    return any(part.startswith(("_", ".")) and "=" not in part for part in name.split("/"))


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
