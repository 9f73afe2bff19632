"""The retry with which each ingest job starts.

In: the job's `Batch`. A failure is an event: new files are taken in, whatever is wrong with held records.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from forebay.batch.batch import Batch
from forebay.batch.leftovers import remove_leftovers
from forebay.batch.reasons import PAUSED_TABLE, TABLE_FAILED
from forebay.batch.retrying.plan import Choice
from forebay.batch.retrying.retry import Retry
from forebay.events import ErrorEvent, ServiceEvent
from forebay.lake.lease_holder import LeaseHeld
from forebay.lake.paused import paused_tables


@dataclass(frozen=True, kw_only=True)
class RecordsNotRetried(ErrorEvent, ServiceEvent):
    """The retry at the job's start failed: records of tables that had failed earlier. They stay in the quarantine, for
    `forebay quarantine retry`."""

    error: str


def retry_at_start(batch: Batch) -> None:
    """Rows whose table could not be written are in the quarantine. A job that starts retries them, and also those of a paused
    table that was resumed. Rows of superseded files leave such tables, too. Rows that still fail stay in the quarantine, and
    the job continues."""
    paused = paused_tables(batch.lake)
    tries = Retry(batch.spark, batch.service, lake=batch.lake, emit=batch.emit, logs=batch.logs, catalog=batch.catalog)
    reasons = (TABLE_FAILED,) if paused else (TABLE_FAILED, PAUSED_TABLE)
    steps = [partial(retry_if_any, tries, Choice("quarantine", reason=reason)) for reason in reasons]
    leftovers = partial(
        remove_leftovers,
        batch.spark,
        batch.service,
        batch.lake,
        paused=paused,
        logs=batch.logs,
        emit=batch.emit,
        now=datetime.now(UTC),
    )
    for step in (*steps, leftovers):
        try:
            step()
        except Exception as problem:  # whatever is wrong with held records, new files are taken in
            batch.emit(RecordsNotRetried(service=batch.service.name, error=str(problem)))
            if isinstance(problem, LeaseHeld):
                break  # an operator's retry is running: the next step would wait as long


def retry_if_any(tries: Retry, choice: Choice) -> None:
    if tries.concerns_any(choice):
        tries.run(choice)
