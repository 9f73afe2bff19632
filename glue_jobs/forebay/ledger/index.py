"""An index of the ledger's keys and their days, in the driver's memory. No batch reads the ledger for new files.

In: the ledger's data files; Arrow reads one column of them, without Spark. Out: an `Index`. It takes eight bytes for each row
of the ledger: 48 bits of the key's hash and 16 bits for the row's day, in one sorted array. Ten million files are 80 MB, a
hundred million 800 MB, and a billion 8 GB (`make bench NAME=index` measures it).

A hit is only a hint, since keys may share a hash. The ledger confirms it, and reads only the days that the index names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date, timedelta
from functools import partial

import numpy as np
import numpy.typing as npt

from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.snapshot import live_files
from forebay.lake.objects import Objects
from forebay.ledger.data_files import READ_AT_ONCE, opened, rows_of
from forebay.threads import in_threads

Packed = npt.NDArray[np.uint64]

NOTHING: Packed = np.zeros(0, np.uint64)
FIRST_DAY = date(1970, 1, 1)
DAY = (1 << 16) - 1
"""The bits of an entry that hold its day, counted since `FIRST_DAY`: enough for a century more."""
HASH = ((1 << 64) - 1) ^ DAY


class Index:
    """An index of hashes and days. It is not thread-safe: one batch at a time uses it. `table_rows` are all rows of the table
    that it was loaded from, None if its log does not say how many."""

    def __init__(self, entries: Packed = NOTHING, *, table_rows: int | None = 0) -> None:
        """`entries` are the index's own from now on."""
        self.table_rows = table_rows
        self._runs: list[Packed] = []
        self.add(entries)

    def __len__(self) -> int:
        return sum(map(len, self._runs))

    @property
    def bytes(self) -> int:
        return sum(run.nbytes for run in self._runs)

    def add(self, entries: Packed) -> None:
        """Remembers what `packed` made; again is harmless. Sorted runs are merged with those that are about as long, so a long
        history is not sorted again for each batch."""
        entries.sort()
        self._runs.append(entries)
        while len(self._runs) > 1 and len(self._runs[-2]) <= 2 * len(self._runs[-1]):
            self._runs[-2:] = [np.unique(np.concatenate(self._runs[-2:]))]

    def days_of(self, hashes: Sequence[int]) -> dict[int, set[date]]:
        """The days on which there may be rows of these hashes; those that are new are not in the answer."""
        asked = np.unique(np.fromiter((hash_ & HASH for hash_ in hashes), np.uint64, len(hashes)))
        days: dict[int, set[date]] = {}
        for run in self._runs:
            first, last = np.searchsorted(run, asked), np.searchsorted(run, asked | np.uint64(DAY), side="right")
            for at in np.flatnonzero(last > first):
                dates = (FIRST_DAY + timedelta(days=int(entry) & DAY) for entry in run[first[at] : last[at]])
                days.setdefault(int(asked[at]), set()).update(dates)
        return {hash_: days[hash_ & HASH] for hash_ in hashes if hash_ & HASH in days}

    def forget_before(self, day: date) -> None:
        oldest = np.uint64((day - FIRST_DAY).days)
        self._runs = [run[(run & np.uint64(DAY)) >= oldest] for run in self._runs]


def load_index(ledger: Objects, services: Collection[str]) -> Index:
    """The index of all files that the ledger has of these services; empty before the first batch."""
    files = live_files(ledger)
    parts = in_threads(partial(_entries_of, ledger, services), files, READ_AT_ONCE)
    return Index(_together(parts), table_rows=rows_in(files))


def rows_in(files: Iterable[LiveFile]) -> int | None:
    """None where the log does not say how many rows one of them has."""
    total = 0
    for file in files:
        if file.rows is None:
            return None
        total += file.rows - file.deleted_rows
    return total


def packed(hashes: npt.NDArray[np.int64], day: date) -> Packed:
    """Entries of an index: these hashes, on this day."""
    entries: Packed = (hashes.view(np.uint64) & np.uint64(HASH)) | np.uint64((day - FIRST_DAY).days)
    return entries


def _entries_of(ledger: Objects, services: Collection[str], file: LiveFile) -> Packed:
    with opened(ledger, file) as parquet:
        hashes = rows_of(parquet, services, ["key_hash"])["key_hash"].drop_null().to_numpy()
    return packed(np.asarray(hashes, np.int64), date.fromisoformat(dict(file.partition)["day"] or ""))


def _together(parts: list[Packed]) -> Packed:
    """Frees each part after copying it: a billion entries must not be in memory twice."""
    entries = np.empty(sum(map(len, parts)), np.uint64)
    at = len(entries)
    while parts:
        part = parts.pop()
        entries[at - len(part) : at] = part
        at -= len(part)
    return entries
