"""The events of this function."""

from __future__ import annotations

from dataclasses import dataclass

from forebay.events import ServiceEvent, TableEvent, metric


@dataclass(frozen=True, kw_only=True)
class FreshnessMeasured(ServiceEvent):
    """The lag of the lake. `waiting` nobody took yet, `held` a job has in hand, `dead` needs a person.
    `since_batch_seconds` is the age of the ledger's newest commit; None before the first."""

    waiting: int = metric()
    held: int = metric()
    dead: int = metric()
    since_batch_seconds: float | None = metric("Seconds", default=None)


@dataclass(frozen=True, kw_only=True)
class TableFreshnessMeasured(TableEvent):
    """The time since a watched table got its last rows."""

    since_rows_seconds: float = metric("Seconds")


@dataclass(frozen=True, kw_only=True)
class TrendMeasured(ServiceEvent):
    """Averages over the last day and over the last week; None where nothing was measured. Latency is that of the file in the
    middle of a batch, from landing to rows; `run_dpu` is what one run of the ingest job takes; `file_bytes` is the size of a
    file, to convert waiting files to bytes."""

    latency_day_seconds: float | None = metric("Seconds", default=None)
    latency_week_seconds: float | None = metric("Seconds", default=None)
    run_dpu_day_seconds: float | None = metric("Seconds", default=None)
    run_dpu_week_seconds: float | None = metric("Seconds", default=None)
    file_bytes: float | None = metric("Bytes", default=None)


@dataclass(frozen=True, kw_only=True)
class KeysChecked(ServiceEvent):
    """The number of KMS keys that are disabled, or about to be deleted."""

    unusable: int = metric()
    which: str | None = None


@dataclass(frozen=True, kw_only=True)
class SchedulesChecked(ServiceEvent):
    """The number of schedules without a successful run for longer than their interval."""

    overdue: int = metric()
    which: str | None = None
