"""The events of a batch after the ledger has it: each file that was set aside, then the batch with its sums and times.

Pure, but for the clock of `Stages`. In: the end of the batch. Out: events, in the order to
emit them.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from forebay.batch.accounting import arriving, percentile, quarantined_by_reason
from forebay.batch.attempt.ending import Ending
from forebay.batch.events import BatchCommitted, ErasedRecordsDropped, FileHeld, RecordsQuarantined
from forebay.content.outcome import ERASED
from forebay.events import Event
from forebay.ledger.entry import DELETED, FORGOTTEN, IGNORED, WITHHELD
from forebay.ledger.versions import standing


class Stages:
    """Measures each stage of a batch in seconds; 0 for one that it did not need."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(self.seconds[name] + time.monotonic() - began, 3)

    @property
    def total(self) -> float:
        return round(time.monotonic() - self.began, 3)


def reports_of(service: str, ending: Ending, stages: Stages, now: datetime) -> Iterator[Event]:
    batch = ending.plan.batch
    for entry in ending.entries:
        if entry.outcome not in ("loaded", "empty", DELETED):
            yield FileHeld(
                service=service,
                batch=batch,
                uri=entry.file.uri,
                outcome=entry.outcome,
                reason=entry.reason,
                detail=entry.detail,
            )
    yield _committed(service, ending, stages, now)
    for row in ending.failed:
        why = {name: row[name] for name in ("outcome", "reason", "detail")}
        yield FileHeld(service=service, batch=batch, uri=f"s3://{row['bucket']}/{row['key']}", **why)
    if erased := sum(fate.rows for fate in ending.plan.fates if fate.reason == ERASED):
        yield ErasedRecordsDropped(service=service, batch=batch, records=erased)
    fates = arriving(ending.plan.fates, ending.unwritten, ending.standing)
    if reasons := quarantined_by_reason(ending.ends, fates, ending.unwritten):
        yield RecordsQuarantined.of(service, batch, reasons)


def _committed(service: str, ending: Ending, stages: Stages, now: datetime) -> BatchCommitted:
    entries, split = ending.entries, ending.split
    done, forgotten = (sum(row["outcome"] == FORGOTTEN for row in rows) for rows in (ending.forgotten, ending.replaced))
    again = standing(split.superseded)  # what is replayed is old, and no delay
    waits = [
        (now - e.file.event_time).total_seconds() for e in entries if e.file.event_time and e.file.file_id not in again
    ]
    return BatchCommitted(
        service=service,
        batch=ending.plan.batch,
        files=len(entries) + len(split.left_out) + done,
        known_files=len(split.known),
        duplicate_files=sum(e.outcome == "duplicate" for e in split.left_out),
        superseded_files=len(ending.replaced) - forgotten + sum(e.outcome == "superseded" for e in split.left_out),
        ignored_files=sum(e.outcome == IGNORED for e in split.left_out),
        forgotten_files=done + forgotten,
        deleted_files=sum(e.outcome == DELETED for e in entries),
        missing_files=sum(e.outcome == "missing" for e in entries),
        withheld_files=sum(e.outcome in WITHHELD for e in entries),
        refused_files=sum(e.outcome == "unreadable" for e in entries),
        bytes=sum(end.bytes_read for end in ending.ends),
        records=sum(e.records for e in entries),
        written=sum(e.written for e in entries),
        quarantined=sum(e.quarantined for e in entries),
        parked=sum(e.parked for e in entries),
        dropped=sum(e.dropped for e in entries),
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
