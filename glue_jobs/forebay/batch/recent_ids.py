"""The ids of the last days' records, in the driver's memory, so that a batch without duplicates reads no ids.

In: the data files of `_forebay/ids`, which Arrow reads once each; the ids of a batch. Out: the ids that may have been written
before, and the days to check. A hit is only a hint: the table confirms it, and names the file.

An id takes eight bytes: ten million are 80 MB, a day of a hundred million 800 MB. With more than `MOST` in the window nothing
is kept, and every batch reads the window.
"""

from __future__ import annotations

from datetime import date

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.snapshot import live_files
from forebay.lake.objects import Objects
from forebay.ledger.data_files import opened
from forebay.ledger.index import Index, packed
from forebay.record.ids import ID_BYTES

MOST = 250_000_000
"""Two gigabytes."""


class RecentIds:
    """The recent ids of one lake, for one driver. Others write ids, too (`retry`), so the table's log is checked each time."""

    def __init__(self, ids: Objects, most: int = MOST) -> None:
        self._ids, self._most = ids, most
        self._read: dict[str, date] = {}
        self._index = Index()

    def days_of(self, ids: pa.ChunkedArray, since: date) -> dict[bytes, set[date]] | None:
        """The ids that may have been written since that day, with the days; None: nobody knows, there are too many."""
        files = {file.path: file for file in live_files(self._ids) if _day(file) >= since}
        if sum(file.rows or 0 for file in files.values()) > self._most:
            self._read, self._index = {}, Index()
            return None
        self._forget(since)
        for path in files.keys() - self._read.keys():
            self._index.add(packed(self._hashes(files[path]), _day(files[path])))
            self._read[path] = _day(files[path])
        hashes = _hashes_of(ids)
        found = self._index.days_of([int(hash_) for hash_ in np.unique(hashes)])
        hits = np.flatnonzero(np.isin(hashes, np.fromiter(found, np.int64, len(found))))
        hinted = zip(ids.take(pa.array(hits)).to_pylist(), hashes[hits], strict=True)
        return {id_: days for id_, hash_ in hinted if (days := {day for day in found[int(hash_)] if day >= since})}

    def _forget(self, since: date) -> None:
        if any(day < since for day in self._read.values()):
            self._index.forget_before(since)
            self._read = {path: day for path, day in self._read.items() if day >= since}

    def _hashes(self, file: LiveFile) -> npt.NDArray[np.int64]:
        with opened(self._ids, file) as parquet:
            return _hashes_of(parquet.read(columns=["id"])["id"])


def _hashes_of(ids: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """The first eight bytes of each."""
    content = bytes_of(ids.cast(pa.binary(ID_BYTES)).combine_chunks())
    return np.ascontiguousarray(content[:, :8]).view(np.int64).reshape(-1)


def bytes_of(ids: pa.FixedSizeBinaryArray) -> npt.NDArray[np.uint8]:
    """A row for each id. That of a null means nothing."""
    begin = ids.offset * ID_BYTES
    content = np.frombuffer(ids.buffers()[1] or b"", np.uint8)[begin : begin + len(ids) * ID_BYTES]
    return content.reshape(-1, ID_BYTES)


def _day(file: LiveFile) -> date:
    return date.fromisoformat(dict(file.partition)["day"] or "")
