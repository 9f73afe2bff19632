"""The event time of rows within its bounds, in Arrow; and the same in SQL, where Spark reads the time by its `formats`.

In: a table, its event times, and the times when the files landed. Out: which rows are outside the bounds, and the times from
which other columns are computed.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.declaration.column import Column
from forebay.declaration.table import Table
from forebay.record.moment import MICROS_OF_A_DAY

MICROS_OF_AN_HOUR = 3_600_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_bucketed(table: Table, column: str) -> bool:
    when = table.event_time
    return when is not None and when.outside == "bucket" and when.column == column


class Times:
    """The event time of rows, within its bounds; where there is none, or it is not known yet, nothing is outside."""

    def __init__(self, table: Table, columns: dict[str, pa.Array], landed: pa.TimestampArray) -> None:
        self.when = table.event_time
        self.too_old = self.too_new = np.zeros(len(landed), bool)
        if self.when is None or self.when.column not in columns:
            return
        name = self.when.column
        if self.when.otherwise == "landed":
            columns[name] = pc.coalesce(columns[name], landed)
        known = np.asarray(pc.and_(pc.is_valid(columns[name]), pc.is_valid(landed)))
        moment, arrived = _micros(columns[name]), _micros(landed)
        if self.when.oldest_days is not None:
            self.too_old = known & (moment < arrived - round(self.when.oldest_days * MICROS_OF_A_DAY))
        if self.when.ahead_hours is not None:
            self.too_new = known & (moment > arrived + round(self.when.ahead_hours * MICROS_OF_AN_HOUR))

    def bucketed(self, values: pa.TimestampArray) -> pa.TimestampArray:
        """The event time, with that of the bucket where it is outside."""
        assert self.when is not None
        bucket = pa.scalar(_in_utc(self.when.bucket), values.type)
        return pc.if_else(pa.array(self.too_old | self.too_new), bucket, values)

    def day_of(self, source: Column, columns: dict[str, pa.Array]) -> pa.Date32Array:
        values = columns[source.name]
        if pa.types.is_date(values.type):
            return values
        if self.when is not None and self.when.outside == "bucket" and source.name == self.when.column:
            values = self.bucketed(values)
        micros = _micros(values)
        days = pa.array((micros // MICROS_OF_A_DAY).astype(np.int32), pa.int32(), mask=np.asarray(pc.is_null(values)))
        return days.cast(pa.date32())


def _micros(moments: pa.TimestampArray) -> Any:
    return np.asarray(pc.fill_null(moments.cast(pa.int64()), 0))


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=moment.tzinfo or UTC)


def time_in_bounds(table: Table, value: str, landed: str, bucketed: bool) -> str:
    """SQL of the event time; where it is `bucketed`, of the time from which other columns are computed."""
    when = table.event_time
    assert when is not None
    if when.otherwise == "landed":
        value = f"coalesce({value}, {landed})"
    outside = []
    if when.oldest_days is not None:
        outside.append(f"unix_micros({value}) < unix_micros({landed}) - {round(when.oldest_days * MICROS_OF_A_DAY)}")
    if when.ahead_hours is not None:
        outside.append(f"unix_micros({value}) > unix_micros({landed}) + {round(when.ahead_hours * MICROS_OF_AN_HOUR)}")
    if not (bucketed and outside and when.outside == "bucket"):
        return value
    bucket = (_in_utc(when.bucket) - EPOCH) // timedelta(microseconds=1)
    return f"if({' or '.join(outside)}, timestamp_micros({bucket}), {value})"
