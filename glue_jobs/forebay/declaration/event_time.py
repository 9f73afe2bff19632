"""The declaration of a record's event time, and of the treatment of times that are too old or in the future."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from forebay.declaration.column import Declared

LONGEST_DAYS = 3_650_000
"""Between any two times of the years 1 to 9999 there are about as many."""


class EventTime(Declared):
    """Bounds are relative to the time when the file landed, so a much later replay of a batch gives the same result."""

    column: str = Field("event_time", description="the declared timestamp column with the event time")
    otherwise: Literal["null", "landed"] = Field(
        "null", description="if a record has no readable time: null, or the time at which its file landed"
    )
    oldest_days: float | None = Field(
        None, gt=0, le=LONGEST_DAYS, description="days; a record older than this when its file landed is out of range"
    )
    ahead_hours: float | None = Field(
        None, ge=0, le=24 * LONGEST_DAYS, description="hours; a record further in the future than this is out of range"
    )
    outside: Literal["quarantine", "bucket"] = Field(
        "quarantine", description="quarantine such records, or put them into one bucket of the table"
    )
    bucket: datetime = Field(
        datetime(1970, 1, 1),
        description="the time that derived columns get for a record out of range; its own column keeps its time",
    )
