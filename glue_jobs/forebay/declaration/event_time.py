"""The declaration of a record's event time, and of the treatment of times that are too old or in the future."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from forebay.declaration.column import Declared

__all__ = ["EventTime"]


LONGEST_DAYS = 3_650_000
"""Between any two times of the years 1 to 9999 there are about as many."""


class EventTime(Declared):
    """Bounds are relative to the time when the file landed, so a batch that is replayed much later gives the same result."""

    column: str = Field("event_time", description="the declared timestamp column with the event time")
    otherwise: Literal["null", "landed"] = Field(
        "null", description="where a record has no time that can be read: null, or when its file landed"
    )
    oldest_days: float | None = Field(
        None, gt=0, le=LONGEST_DAYS, description="a record that was older when its file landed is outside"
    )
    ahead_hours: float | None = Field(
        None, ge=0, le=24 * LONGEST_DAYS, description="hours that a record may be in the future before it is outside"
    )
    outside: Literal["quarantine", "bucket"] = Field(
        "quarantine", description="keep such records beside the table, or put them into one bucket of it"
    )
    bucket: datetime = Field(
        datetime(1970, 1, 1),
        description="the time that derived columns see of a record outside; its own column keeps its own",
    )
