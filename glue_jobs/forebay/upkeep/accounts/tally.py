"""Rows of one table by file, in memory that does not grow with the files.

In: hashes of files, with rows of each. Out: the rows, and sums that differ where any file's rows differ. A sum of rows times
hash, modulo 2^64, is the same in any order. So the ledger and a table are compared without a list of files on either side;
the buckets that differ say where to look for the files.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

BUCKETS = 256
NO_FILE = 1
"""The hash of rows that name no file. Not 0, which would weigh nothing."""

Hashes = npt.NDArray[np.int64]


def _empty() -> npt.NDArray[np.uint64]:
    return np.zeros(BUCKETS, dtype=np.uint64)


@dataclass
class Tally:
    rows: int = 0
    sums: npt.NDArray[np.uint64] = field(default_factory=_empty)

    def add(self, hashes: Hashes, rows: npt.NDArray[np.int64]) -> None:
        self.rows += int(rows.sum())
        weighed = hashes.view(np.uint64) * rows.astype(np.uint64)
        np.add.at(self.sums, bucket_of(hashes), weighed)

    def buckets_apart(self, other: Tally) -> list[int]:
        return [int(bucket) for bucket in np.flatnonzero(self.sums != other.sums)]


def bucket_of(hashes: Hashes) -> npt.NDArray[np.int64]:
    return hashes & (BUCKETS - 1)


def hash_of(file_id: str | None) -> int:
    """The hash as in the ledger: the first eight bytes of the file's id. Ids that are not ours get their own hash."""
    if file_id is None:
        return NO_FILE
    try:
        content = bytes.fromhex(file_id[:16])
    except ValueError:
        content = b""
    if len(content) != 8:
        content = hashlib.blake2b(file_id.encode(), digest_size=8).digest()
    return int.from_bytes(content, "big", signed=True)
