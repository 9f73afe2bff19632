"""Events about periods: which became complete, and what went wrong while they were judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forebay.events import Event, ServiceEvent


@dataclass(frozen=True, kw_only=True)
class PeriodCompleted(ServiceEvent):
    """All files of an hour or a day of a feed are in, for the `revision`th time."""

    feed: str
    period: str
    revision: int
    files: int
    rows: int
    refused: int


@dataclass(frozen=True, kw_only=True)
class PeriodReopened(ServiceEvent):
    """A file arrived for a complete period. The period is complete again when the file is loaded."""

    feed: str
    period: str
    revision: int


@dataclass(frozen=True, kw_only=True)
class PeriodsNotJudged(Event):
    """The check whether periods of a feed are complete failed. It will be retried. The job needs s3:ListBucketVersions on the
    landing buckets."""

    level: ClassVar[str] = "warning"
    service: str
    feed: str
    periods: int
    error: str


@dataclass(frozen=True, kw_only=True)
class PeriodsNotTold(Event):
    """EventBridge did not accept events about periods; the table has them. They will be sent again. The job needs
    events:PutEvents."""

    level: ClassVar[str] = "warning"
    service: str
    error: str
