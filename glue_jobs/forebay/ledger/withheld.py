"""Files that S3 withheld (denied, or not sent), and the time of each one's next try.

In: the ledger, read once without Spark, and then the entries of each batch. Out: the files that are due. The pause after a try
doubles from `FIRST_PAUSE` to `LONGEST_PAUSE`. The ledger counts the tries, so a restart does not begin with short pauses
again. A file that was handed out is forgotten here: it returns with its next entry if S3 withholds it again. Files that wait
for a replay, to be forgotten, or for their rows to leave a table, are among them when the ledger is read.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forebay.lake.objects import Objects
from forebay.lake.rows import python_rows
from forebay.landed_file import LandedFile
from forebay.ledger.data_files import data_files, plainly_typed
from forebay.ledger.entry import FORGET, PUT_AGAIN, REPLAY, WITHHELD, Entry, as_known

FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=5), timedelta(hours=6)
MOST_KNOWN = 100_000
"""Some 60 MB. Reconcile announces further withheld files, each night."""

LONG_AGO = datetime.min.replace(tzinfo=UTC)
FILE = ("file_id", "bucket", "key", "size", "etag", "version_id", "sequencer", "event_time")
COLUMNS = (*FILE, "service", "committed_at", "tries")


@dataclass(frozen=True)
class Waiting:
    """A file that S3 withheld `tries` times, the last time at `tried_at`."""

    file: LandedFile
    tries: int
    tried_at: datetime

    @property
    def due(self) -> datetime:
        times: int = 2 ** min(self.tries - 1, 20)
        return self.tried_at + min(FIRST_PAUSE * times, LONGEST_PAUSE)


class Withheld:
    """One driver's record of them. The batch's thread and the job's use it at the same time."""

    def __init__(self) -> None:
        self._waiting: dict[str, Waiting] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    def note(self, entries: Iterable[Entry], at: datetime) -> None:
        """Records the outcomes of a batch's files."""
        for entry in entries:
            if entry.outcome in WITHHELD:
                self.add([Waiting(entry.file, entry.tries, at)])
            else:
                with self._lock:
                    self._waiting.pop(entry.file.file_id, None)

    def add(self, waiting: Iterable[Waiting]) -> None:
        """Adds files; an earlier entry of the same file stays."""
        with self._lock:
            for one in waiting:
                if len(self._waiting) < MOST_KNOWN:
                    self._waiting.setdefault(one.file.file_id, one)

    def take_due(self, now: datetime, most: int) -> list[Waiting]:
        """Takes out the files that wait longest."""
        with self._lock:
            due = [one for one in self._waiting.values() if one.due <= now]
            taken = heapq.nsmallest(most, due, key=lambda one: one.due)
            for one in taken:
                del self._waiting[one.file.file_id]
        return taken


def withheld_in(ledger: Objects, service: str) -> Iterator[Waiting]:
    """All of them that the ledger has of this service, however old; nothing before the first batch."""
    for parquet in data_files(ledger):
        yield from _withheld_rows(parquet, service)


def _withheld_rows(parquet: pq.ParquetFile, service: str) -> Iterator[Waiting]:
    """The outcomes first: nearly all data files hold no such file, and their other columns are not fetched."""
    ends = _read(parquet, ["outcome", "reason"])
    chosen = pc.is_in(ends["outcome"], value_set=pa.array([*WITHHELD, REPLAY, FORGET]))
    if "reason" in ends.column_names:
        chosen = pc.or_(chosen, pc.equal(ends["reason"], PUT_AGAIN).fill_null(False))
    if not pc.any(chosen).as_py():
        return
    for row in python_rows(_read(parquet, COLUMNS).filter(chosen)):
        if row.get("service") in (None, service):
            yield _waiting(row)


def _read(parquet: pq.ParquetFile, columns: Sequence[str]) -> pa.Table:
    """Those of the columns that the file has: earlier code wrote fewer."""
    return plainly_typed(parquet.read(columns=list(columns)))


def _waiting(row: dict[str, Any]) -> Waiting:
    named = {name: row[name] for name in ("bucket", "key", "size", "version_id", "event_time")}
    file = LandedFile(**named, etag=row["etag"] or "", sequencer=row.get("sequencer"))
    return Waiting(as_known(file, row), row.get("tries") or 1, row.get("committed_at") or LONG_AGO)
