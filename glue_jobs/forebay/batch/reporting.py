"""What is said of a batch once the ledger has it: each file that was set aside, then the batch with its sums and times.

Pure, but for the clock of `Stages`. In: what the steps of the batch found. Out: events, in the order in which they are
to be told.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from forebay.batch.accounting import Totals, percentile
from forebay.batch.events import BatchCommitted, FileHeld
from forebay.content.end import FileEnd
from forebay.events import Event
from forebay.ledger.entry import IGNORED, WITHHELD, Entry
from forebay.ledger.versions import Sorted, standing

__all__ = ["Stages", "reports_of"]


class Stages:
    """How long each stage of a batch took."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - began, 3)

    @property
    def total(self) -> float:
        return round(time.monotonic() - self.began, 3)


def reports_of(
    service: str,
    batch: int,
    split: Sorted,
    ends: Sequence[FileEnd],
    entries: Sequence[Entry],
    superseded: int,
    forgotten: int,
    stages: Stages,
    now: datetime,
) -> Iterator[Event]:
    for entry in entries:
        if entry.outcome not in ("loaded", "empty"):
            why: dict[str, Any] = {"reason": entry.reason, "detail": entry.detail}
            yield FileHeld(service=service, batch=batch, uri=entry.file.uri, outcome=entry.outcome, **why)
    totals = Totals.of(entries)
    again = standing(split.superseded)  # what is replayed is old, and no delay
    waits = [
        (now - e.file.event_time).total_seconds() for e in entries if e.file.event_time and e.file.file_id not in again
    ]
    yield BatchCommitted(
        service=service,
        batch=batch,
        files=len(entries) + len(split.left_out) + forgotten,
        known_files=len(split.known),
        duplicate_files=sum(e.outcome == "duplicate" for e in split.left_out),
        superseded_files=superseded + sum(e.outcome == "superseded" for e in split.left_out),
        ignored_files=sum(e.outcome == IGNORED for e in split.left_out),
        forgotten_files=forgotten,
        missing_files=sum(e.outcome == "missing" for e in entries),
        withheld_files=sum(e.outcome in WITHHELD for e in entries),
        refused_files=sum(e.outcome == "unreadable" for e in entries),
        bytes=sum(end.bytes_read for end in ends),
        records=totals.records,
        written=totals.written,
        quarantined=totals.quarantined,
        parked=totals.parked,
        dropped=totals.dropped,
        tables=len({name for entry in entries for name in entry.tables}),
        claim_seconds=stages.seconds["claim"],
        read_seconds=stages.seconds["read"],
        write_seconds=stages.seconds["write"],
        ledger_seconds=stages.seconds["ledger"],
        seconds=stages.total,
        latency_p50_seconds=percentile(waits, 0.5),
        latency_p99_seconds=percentile(waits, 0.99),
        latency_max_seconds=max(waits, default=None),
    )
