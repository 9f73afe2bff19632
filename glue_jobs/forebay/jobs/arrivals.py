"""Counts the files that ingest appends, and adds them to the tables' health objects now and then: a sink of events.

In: events. Out: updates of `<lake>/_forebay/health/<table>.json`, every quarter of an hour and at the end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from forebay.batch.events import BatchCommitted, OwnRowsAppended, RowsAppended
from forebay.events import Event
from forebay.lake.health import HealthRecords

__all__ = ["Arrivals"]

FLUSH_EVERY_S = 900.0


class Arrivals:
    """Counts files as they are appended, and writes them down now and then, in a thread of its own: a sink of events."""

    def __init__(
        self,
        records: HealthRecords,
        *,
        flush_every_s: float = FLUSH_EVERY_S,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._records, self._every, self._clock = records, flush_every_s, clock
        self._pending: dict[str, tuple[int, int, int]] = {}
        self._flushed = clock()
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "health")

    def __call__(self, event: Event) -> None:
        if isinstance(event, RowsAppended | OwnRowsAppended):
            self._came(event.table, event.files, event.bytes, event.rows)
        elif isinstance(event, BatchCommitted) and (self._clock() - self._flushed).total_seconds() >= self._every:
            self._flushed = self._clock()
            self._thread.submit(self.flush)

    def flush(self) -> None:
        with self._lock:
            pending, self._pending = self._pending, {}
        at = self._clock()
        with ThreadPoolExecutor(8, "health") as threads:
            list(threads.map(lambda item: self._write(item[0], item[1], at), pending.items()))

    def close(self) -> None:
        self._thread.shutdown()
        self.flush()

    def _came(self, table: str, files: int, size: int, rows: int) -> None:
        with self._lock:
            before = self._pending.get(table, (0, 0, 0))
            self._pending[table] = before[0] + files, before[1] + size, before[2] + rows

    def _write(self, table: str, came: tuple[int, int, int], at: datetime) -> None:
        files, size, rows = came
        self._records.update(table, lambda health: health.with_arrivals(files, size, at, rows=rows))
