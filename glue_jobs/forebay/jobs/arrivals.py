"""Counts the files that ingest appends, and fields that got no column: a sink of events. Now and then it adds them to the
tables' health objects.

In: events. Out: updates of `<lake>/_forebay/health/<table>.json`, every quarter of an hour and at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from forebay.batch.events import BatchCommitted, OwnRowsAppended, RowsAppended
from forebay.events import Event
from forebay.lake.health import Health, HealthRecords
from forebay.table.events import ColumnsLeftOut
from forebay.threads import in_threads

FLUSH_EVERY_S = 900.0


class _Came(NamedTuple):
    """Appended to a table and not saved yet, and when the last of it came."""

    files: int
    bytes: int
    rows: int
    at: datetime


class Arrivals:
    """A sink of events: counts appended files, and saves the counts at intervals, in a thread of its own."""

    def __init__(
        self,
        records: HealthRecords,
        *,
        flush_every_s: float = FLUSH_EVERY_S,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._records, self._every, self._clock = records, flush_every_s, clock
        self._pending: dict[str, _Came] = {}
        self._left_out: dict[str, ColumnsLeftOut] = {}
        self._flushed = clock()
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "health")

    def __call__(self, event: Event) -> None:
        if isinstance(event, RowsAppended | OwnRowsAppended):
            self._came(event.table, event.files, event.bytes, event.rows)
        elif isinstance(event, ColumnsLeftOut):
            with self._lock:
                self._left_out[event.table] = event
        elif isinstance(event, BatchCommitted) and (self._clock() - self._flushed).total_seconds() >= self._every:
            self._flushed = self._clock()
            self._thread.submit(self.flush)

    def flush(self) -> None:
        with self._lock:
            pending, self._pending = self._pending, {}
            left_out, self._left_out = self._left_out, {}
        names = {*pending, *left_out}
        in_threads(lambda name: self._write(name, pending.get(name), left_out.get(name)), names, at_once=8)

    def close(self) -> None:
        self._thread.shutdown()
        self.flush()

    def _came(self, table: str, files: int, size: int, rows: int) -> None:
        with self._lock:
            before = self._pending.get(table, _Came(0, 0, 0, self._clock()))
            self._pending[table] = _Came(before.files + files, before.bytes + size, before.rows + rows, self._clock())

    def _write(self, table: str, came: _Came | None, left_out: ColumnsLeftOut | None) -> None:
        def changed(health: Health) -> Health:
            if came is not None:
                health = health.with_arrivals(came.files, came.bytes, came.at, rows=came.rows)
            if left_out is None:
                return health
            return replace(health, left_out=left_out.columns, left_out_such_as=left_out.such_as)

        self._records.update(table, changed)
