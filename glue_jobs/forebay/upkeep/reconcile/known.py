"""Which files the ledger knows, by their hashes, without Spark: the data files of its last days are read as they lie there.

A file that S3 did not give counts as unknown: it is to be announced again. An entry is written after its file was, so the
entries of files since a moment are in the partitions since that day.
"""

from __future__ import annotations

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
from forebay.ledger.entry import NOT_FINAL

__all__ = ["known_since"]

READ_AT_ONCE = 8


def known_since(ledger: Objects, since: datetime) -> npt.NDArray[np.int64]:
    """Sorted. Empty before the first batch."""
    try:
        files = read_snapshot(ledger).files
    except NoTable:
        return np.array([], dtype=np.int64)
    # Clocks of a job and of S3 are not the same.
    first = str((since - timedelta(hours=1)).date())

    def hashes(path: str) -> npt.NDArray[np.int64]:
        content = ledger.read(path)
        if content is None:
            raise TryAgain(f"{ledger.place}/{path} went away while it was looked at")
        found = pq.read_table(pa.BufferReader(content), columns=["file_hash", "outcome"])
        final = pc.invert(pc.is_in(found["outcome"], value_set=pa.array(NOT_FINAL)))
        return np.asarray(found.filter(final)["file_hash"].to_numpy(), dtype=np.int64)

    with ThreadPoolExecutor(READ_AT_ONCE, "known") as threads:
        parts = list(threads.map(hashes, (unquote(file.path) for file in files if (_day(file) or first) >= first)))
    return np.unique(np.concatenate([np.array([], dtype=np.int64), *parts]))


def _day(file: LiveFile) -> str | None:
    return dict(file.partition).get("day")
