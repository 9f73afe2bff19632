"""The Delta table `<lake>/_forebay/after_load`: one row for each landed file that was moved or deleted.

In: `Done`s. Out: rows, in one commit for each chunk of files; rows are never changed. The table is partitioned by the day of
the file's row in the ledger. So a run reads the notes of one day at a time, and asks S3 only about files without a note.
A file has a row before anything happens to it, too. So an erasure finds its copy, and a deletion is known to be ours, even if
the run dies and no other one follows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import pyarrow as pa

from forebay.errors import TryAgain
from forebay.lake.log.listing import NoTable
from forebay.lake.log.replace_files import add_files
from forebay.lake.log.snapshot import Snapshot, read_snapshot
from forebay.lake.objects import Objects
from forebay.lake.rows import python_rows
from forebay.ledger.cleared import LONGEST, STARTED
from forebay.ledger.data_files import opened, plainly_typed
from forebay.upkeep.after_load.due import DueFile
from forebay.upkeep.after_load.effect import Done

DAY = "day"
ATTEMPTS = 50
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("file_id", "service", "bucket", "key", "action", "place")),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


class Notes:
    """The notes of one service, for one run."""

    def __init__(self, table: Objects, service: str) -> None:
        self._table, self._service = table, service
        self._before: dict[str, dict[tuple[str, str], datetime]] = {}

    def done(self, day: str) -> frozenset[str]:
        """The ids of the files of a day that need nothing more."""
        return frozenset(file_id for file_id, action, _, _ in self._of(day) if action != STARTED)

    def start(self, due: Iterable[tuple[DueFile, str]]) -> frozenset[str]:
        """Files of one day that are about to be deleted, once they are copied to these places, if there are any. Returns the
        ids of those that a run started before. A note is too old for a deletion of today where S3 refused the first one."""
        of_day, now = [*due], datetime.now(UTC)
        before = self._started_before(of_day[0][0].day) if of_day else {}
        known = {one for one, at in before.items() if now - at < LONGEST / 2}
        self.add(Done(file, STARTED, place) for file, place in of_day if (file.file_id, place) not in known)
        return frozenset(file_id for file_id, _ in before)

    def _started_before(self, day: str) -> dict[tuple[str, str], datetime]:
        """By earlier runs, and when last: this one starts each file once. So notes of a day are read before its first chunk
        alone."""
        if day not in self._before:
            last: dict[tuple[str, str], datetime] = {}
            for file_id, action, place, at in self._of(day):
                if action == STARTED:
                    last[file_id, place or ""] = max(at, last.get((file_id, place or ""), at))
            self._before = {day: last}
        return self._before[day]

    def _of(self, day: str) -> Iterator[tuple[str, str, str | None, datetime]]:
        snapshot = self._snapshot()
        for file in snapshot.files if snapshot else ():
            if dict(file.partition).get(DAY) == day:
                with opened(self._table, file) as parquet:
                    rows = plainly_typed(parquet.read(columns=["file_id", "action", "place", "at"]))
                yield from (tuple(row.values()) for row in python_rows(rows))

    def add(self, done: Iterable[Done]) -> None:
        days = defaultdict[str, list[Done]](list)
        for one in done:
            days[one.file.day].append(one)
        tables = {day: pa.Table.from_pylist([self._row(one) for one in some], SCHEMA) for day, some in days.items()}
        for _ in range(ATTEMPTS if tables else 0):
            if add_files(self._table, self._snapshot(), DAY, tables):
                return
        if tables:
            raise TryAgain(f"{self._table.place}: other writers keep changing it")

    def _row(self, one: Done) -> dict[str, object]:
        facts = {"file_id": one.file.file_id, "service": self._service, "bucket": one.file.bucket, "key": one.file.key}
        return {**facts, "action": one.action, "place": one.place or None, "at": one.at}

    def _snapshot(self) -> Snapshot | None:
        try:
            return read_snapshot(self._table)
        except NoTable:
            return None
