"""Counts the tables in trouble with each batch, so that an alarm's metric exists before the first trouble.

In: events of single tables, whose own metrics begin with the first event. Out: one `TroublesCounted` a batch, and one at once
for each table that failed and each expectation that rings: after a crash, the next run may find them already settled. The
other troubles last, so later batches report them again.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass

from forebay.batch.events import BatchCommitted, ExpectationFailed, ExpectationViolated, TableFailed
from forebay.events import Emit, Event, ServiceEvent, metric
from forebay.table.events import CatalogEntryForeign, ColumnsLeftOut


@dataclass(frozen=True, kw_only=True)
class TroublesCounted(ServiceEvent):
    """Since the last batch: tables that could not be written, that reached their limit of columns, or whose name in the
    catalog is taken; and expectations that ring. Usually none."""

    failed: int = metric(default=0)
    full: int = metric(default=0)
    unlisted: int = metric(default=0)
    violated: int = metric(default=0)


class Troubles:
    """A sink, of any thread."""

    def __init__(self, tell: Emit) -> None:
        self._tell, self._lock = tell, threading.Lock()
        self._counts: Counter[type[Event]] = Counter()

    def __call__(self, event: Event) -> None:
        if isinstance(event, TableFailed):
            self._tell(TroublesCounted(service=event.service, failed=1))
        elif isinstance(event, ExpectationFailed) or (isinstance(event, ExpectationViolated) and event.rings):
            self._tell(TroublesCounted(service=event.service, violated=1))
        elif isinstance(event, ColumnsLeftOut | CatalogEntryForeign):
            with self._lock:
                self._counts[type(event)] += 1
        elif isinstance(event, BatchCommitted):
            with self._lock:
                counts, self._counts = self._counts, Counter()
            full, unlisted = counts[ColumnsLeftOut], counts[CatalogEntryForeign]
            self._tell(TroublesCounted(service=event.service, full=full, unlisted=unlisted))
