"""The ledger's counts of each file, read data file by data file, never all at once.

In: the ledger's objects. Out: batches of columns. They hold the file's hash, its outcome and counts, and its rows by table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from forebay.lake.objects import Objects
from forebay.ledger.data_files import SERVICE, data_files, plainly_typed

COUNTS = ("records", "written", "quarantined", "parked", "dropped")
COLUMNS = ("file_hash", SERVICE, "bucket", "key", "claimed_at", "outcome", *COUNTS, "tables")
ROWS_AT_ONCE = 65_536


class LedgerRows:
    """Some rows of the ledger, as columns."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._rows = rows
        self.hashes: npt.NDArray[np.int64] = np.asarray(rows["file_hash"], dtype=np.int64)

    def outcomes(self) -> dict[str, int]:
        counts = pc.value_counts(self._rows["outcome"])
        return {count["values"].as_py(): count["counts"].as_py() for count in counts}

    def counts(self, name: str) -> npt.NDArray[np.int64]:
        return np.asarray(pc.fill_null(self._rows[name], 0), dtype=np.int64)

    def younger_than(self, expired: Mapping[str, str]) -> npt.NDArray[np.bool_]:
        """Those that were claimed on the day until which the held rows of their service expired, or later."""
        stay = np.ones(self._rows.num_rows, dtype=bool)
        for service, until in expired.items():
            day = date.fromisoformat(until)
            days = pc.fill_null(pc.cast(self._rows["claimed_at"], pa.date32()), day)
            theirs = pc.fill_null(pc.equal(self._rows[SERVICE], service), False)
            stay &= ~np.asarray(pc.and_(theirs, pc.less(days, pa.scalar(day))), dtype=bool)
        return stay

    def uneven(self) -> npt.NDArray[np.bool_]:
        """The files whose numbers do not add up."""
        records, written, *others = (self.counts(name) for name in COUNTS)
        maps, rows = self._maps()
        by_table = np.zeros(len(records) + 1, dtype=np.int64)
        np.add.at(by_table, np.repeat(np.arange(len(records)), np.diff(np.asarray(maps.offsets))), rows)
        return np.asarray((records != sum(others, written)) | (written != by_table[:-1]), dtype=bool)

    def by_table(self) -> Iterator[tuple[str, npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Each table that these files have rows in: the hashes of the files, and their rows there."""
        maps, rows = self._maps()
        hashes = np.repeat(self.hashes, np.diff(np.asarray(maps.offsets)))
        names = maps.keys[maps.offsets[0].as_py() : maps.offsets[-1].as_py()].dictionary_encode()
        which = np.asarray(names.indices)
        for at, name in enumerate(names.dictionary.to_pylist()):
            chosen = which == at
            yield name, hashes[chosen], rows[chosen]

    def _maps(self) -> tuple[pa.MapArray, npt.NDArray[np.int64]]:
        """The column of rows by table, and its values one after the other."""
        maps = pc.if_else(pc.is_valid(self._rows["tables"]), self._rows["tables"], None)
        begin, end = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
        return maps, np.asarray(pc.fill_null(maps.items[begin:end], 0), dtype=np.int64)

    def hashes_with(self, outcome: str) -> npt.NDArray[np.int64]:
        """The hashes of the files with this outcome."""
        return self._hashes_in("outcome", [outcome])

    def hashes_of(self, keys: Sequence[str]) -> npt.NDArray[np.int64]:
        """The hashes of the files with one of these keys, in any version."""
        return self._hashes_in("key", keys)

    def _hashes_in(self, column: str, values: Sequence[str]) -> npt.NDArray[np.int64]:
        chosen = np.asarray(pc.is_in(self._rows[column], pa.array(values, pa.string())), dtype=bool)
        found: npt.NDArray[np.int64] = self.hashes[chosen]
        return found

    def uri(self, at: int) -> str:
        return f"s3://{self._rows['bucket'][at].as_py()}/{self._rows['key'][at].as_py()}"


def ledger_rows(ledger: Objects) -> Iterator[LedgerRows]:
    """None before the first batch."""
    for parquet in data_files(ledger):
        for batch in parquet.iter_batches(ROWS_AT_ONCE, columns=list(COLUMNS), use_threads=False):
            yield LedgerRows(plainly_typed(batch))
