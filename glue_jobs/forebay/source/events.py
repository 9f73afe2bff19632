"""The source's events. The planner on the driver emits `QueuePolled` and `ManifestsNotCleaned`, and tasks emit the others. With
the option `metrics` the planner publishes its own numbers, because no other process has them.
"""

from __future__ import annotations

from dataclasses import dataclass

from forebay.events import ErrorEvent, Event, ServiceEvent, metric


@dataclass(frozen=True, kw_only=True)
class QueuePolled(ServiceEvent):
    """One poll of the queue. Empty polls are reported once a minute."""

    queue: str
    batch: int
    received: int = metric()
    files: int = metric()
    duplicates: int = metric()
    ignored: int = metric()
    ignored_by_reason: dict[str, int] | None
    kept: int = metric()
    held: int = metric()
    deleted: int = metric()
    deletions_failed: int = metric()
    oldest_age_s: float | None = metric("Seconds")
    took_s: float


@dataclass(frozen=True, kw_only=True)
class ManifestsNotCleaned(ErrorEvent):
    """Old manifests could not be deleted; the data is safe, but their number grows."""

    path: str
    problem: str


@dataclass(frozen=True, kw_only=True)
class ContentsRead(Event):
    """The share of one task in a batch."""

    files: int
    records: int
    misfits: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class FilePassedOver(Event):
    """A file yielded no records, and the query continued, as its option allows."""

    uri: str
    outcome: str
    reason: str | None
    detail: str | None
