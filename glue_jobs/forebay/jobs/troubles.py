"""Counts the tables in trouble with each batch, so that an alarm's metric exists before the first trouble.

In: events of single tables, whose own metrics begin with the first event. Out: one `TroublesCounted` a batch.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass

from forebay.batch.events import BatchCommitted, TableFailed
from forebay.events import Emit, Event, ServiceEvent, metric
from forebay.table.events import CatalogEntryForeign, ColumnsLeftOut

__all__ = ["Troubles", "TroublesCounted"]


@dataclass(frozen=True, kw_only=True)
class TroublesCounted(ServiceEvent):
    """Since the last batch: tables that could not be written, that reached their limit of columns, or whose name in the
    catalog is taken. Usually none."""

    failed: int = metric()
    full: int = metric()
    unlisted: int = metric()


class Troubles:
    """A sink, of any thread."""

    def __init__(self, tell: Emit) -> None:
        self._tell, self._lock = tell, threading.Lock()
        self._counts: Counter[type[Event]] = Counter()

    def __call__(self, event: Event) -> None:
        if isinstance(event, TableFailed | ColumnsLeftOut | CatalogEntryForeign):
            with self._lock:
                self._counts[type(event)] += 1
        elif isinstance(event, BatchCommitted):
            with self._lock:
                counts, self._counts = self._counts, Counter()
            self._tell(
                TroublesCounted(
                    service=event.service,
                    failed=counts[TableFailed],
                    full=counts[ColumnsLeftOut],
                    unlisted=counts[CatalogEntryForeign],
                )
            )
