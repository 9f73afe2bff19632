"""Which files the ledger knows, by their hashes, without Spark: the data files of its last days are read as they lie there.

An entry is written after its file was, so the entries of files since a moment are in the partitions since that day.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forebay.errors import TryAgain
from forebay.lake.log.listing import NoTable
from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import Objects
from forebay.ledger.withheld import plain

__all__ = ["known_since"]

READ_AT_ONCE = 8


def known_since(ledger: Objects, since: datetime) -> npt.NDArray[np.int64]:
    """Sorted. Empty before the first batch. A file that was missing is not known: it may be there by now."""
    # Clocks of a job and of S3 are not the same.
    first = str((since - timedelta(hours=1)).date())
    there = pc.field("outcome") != "missing"
    parts = _rows(ledger, ["file_hash"], there, lambda file: (_day(file) or first) >= first)
    hashes = [np.asarray(part["file_hash"].to_numpy(), dtype=np.int64) for part in parts]
    return np.unique(np.concatenate([np.array([], dtype=np.int64), *hashes]))


def _rows(
    ledger: Objects, columns: list[str], wanted: pc.Expression, looked_at: Callable[[LiveFile], bool]
) -> list[pa.Table]:
    """Of the data files that are looked at; nothing before the first batch."""
    try:
        files = read_snapshot(ledger).files
    except NoTable:
        return []

    def rows(path: str) -> pa.Table:
        content = ledger.read(path)
        if content is None:
            raise TryAgain(f"{ledger.place}/{path} went away while it was looked at")
        table = pq.ParquetFile(pa.BufferReader(content)).read(columns=[*columns, "outcome"])
        return table.cast(plain(table.schema)).filter(wanted).select(columns)

    with ThreadPoolExecutor(READ_AT_ONCE, "known") as threads:
        return list(threads.map(rows, (unquote(file.path) for file in files if looked_at(file))))


def _day(file: LiveFile) -> str | None:
    return dict(file.partition).get("day")
