"""The hashes of files in the ledger, read without Spark from the data files of its last days.

An entry is written after its file was, so the entries of files since a time are in the partitions since that day.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.snapshot import live_files
from forebay.lake.objects import Objects
from forebay.landed_file import LandedFile
from forebay.ledger.data_files import opened, rows_of
from forebay.ledger.entry import file_hash
from forebay.threads import in_threads


def known_since(ledger: Objects, since: datetime, services: Collection[str]) -> npt.NDArray[np.int64]:
    """The sorted hashes of these services' files. Empty before the first batch. A file that was missing is left out: it may
    exist by now. A superseded file without a version id is left
    out, too: its key may have the same bytes again."""
    # Clocks of a job and of S3 are not the same.
    first = str((since - timedelta(hours=1)).date())
    parts = _rows(ledger, services, lambda file: (_day(file) or first) >= first)
    hashes = [np.asarray(part["file_hash"].to_numpy(), dtype=np.int64) for part in parts]
    return np.unique(np.concatenate([np.array([], dtype=np.int64), *hashes]))


def unknown(
    files: Sequence[LandedFile], known: npt.NDArray[np.int64], services: Collection[str]
) -> tuple[LandedFile, ...]:
    """`known` is sorted, and may be a thousand times as long."""
    there = np.zeros(len(files), bool)
    for service in ("", *services):
        there |= _are_in(known, [file_hash(replace(file, service=service)) for file in files])
    return tuple(files[n] for n in np.flatnonzero(~there).tolist())


def _are_in(known: npt.NDArray[np.int64], hashes: Sequence[int]) -> npt.NDArray[np.bool_]:
    asked = np.array(hashes, np.int64)
    at = np.searchsorted(known, asked)
    there = at < len(known)
    there[there] = known[at[there]] == asked[there]
    return there


def _rows(ledger: Objects, services: Collection[str], looked_at: Callable[[LiveFile], bool]) -> list[pa.Table]:
    """The rows of the data files that are read; nothing before the first batch."""

    def rows(file: LiveFile) -> pa.Table:
        plain = pc.field("version_id").is_null() | (pc.field("version_id") == "null")
        may_be_back = (pc.field("outcome") == "missing") | ((pc.field("outcome") == "superseded") & plain)
        with opened(ledger, file) as parquet:
            return rows_of(parquet, services, ["file_hash", "outcome", "version_id"]).filter(~may_be_back)

    return in_threads(rows, filter(looked_at, live_files(ledger)), at_once=8)


def _day(file: LiveFile) -> str | None:
    return dict(file.partition).get("day")
