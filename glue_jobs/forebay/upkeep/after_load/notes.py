"""The Delta table `<lake>/_forebay/after_load`: one row for each landed file that was moved or deleted.

In: `Done`s. Out: rows, in one commit for each chunk of files; rows are never changed. The table is partitioned by the day of
the file's row in the ledger. So a run reads the notes of one day at a time, and asks S3 only about files without a note.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

import pyarrow as pa

from forebay.errors import TryAgain
from forebay.lake.log.listing import NoTable
from forebay.lake.log.replace_files import add_files
from forebay.lake.log.snapshot import Snapshot, read_snapshot
from forebay.lake.objects import Objects
from forebay.ledger.data_files import opened, plainly_typed
from forebay.upkeep.after_load.effect import Done

__all__ = ["SCHEMA", "Notes"]

DAY = "day"
ATTEMPTS = 50
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("file_id", "service", "bucket", "key", "action", "place")),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


class Notes:
    """The notes of one service."""

    def __init__(self, table: Objects, service: str) -> None:
        self._table, self._service = table, service

    def done(self, day: str) -> frozenset[str]:
        """The ids of the files of a day that need nothing more."""
        found, snapshot = set[str](), self._snapshot()
        for file in snapshot.files if snapshot else ():
            if dict(file.partition).get(DAY) == day:
                with opened(self._table, file) as parquet:
                    found.update(plainly_typed(parquet.read(columns=["file_id"]))["file_id"].to_pylist())
        return frozenset(found)

    def add(self, done: Iterable[Done], at: datetime) -> None:
        days = defaultdict[str, list[Done]](list)
        for one in done:
            days[one.file.day].append(one)
        tables = {day: pa.Table.from_pylist([self._row(one, at) for one in some], SCHEMA) for day, some in days.items()}
        for _ in range(ATTEMPTS if tables else 0):
            if add_files(self._table, self._snapshot(), DAY, tables):
                return
        if tables:
            raise TryAgain(f"{self._table.place}: other writers keep changing it")

    def _row(self, one: Done, at: datetime) -> dict[str, object]:
        told = {"file_id": one.file.file_id, "service": self._service, "bucket": one.file.bucket, "key": one.file.key}
        return {**told, "action": one.action, "place": one.place or None, "at": at}

    def _snapshot(self) -> Snapshot | None:
        try:
            return read_snapshot(self._table)
        except NoTable:
            return None
