"""Texts become moments and days as Spark's own JSON reader makes them where it is given no pattern.

In: what a JSON document holds. Out: microseconds since 1970, or days; None for what is neither. A text without a zone is
local to the zone of the reader. Spark takes three more kinds, which are refused here: a time without a date (another
moment with each replay), a number in a text as a day, and years beyond 9999.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["day_of", "local_micros_of", "micros_of", "zone_of"]

_MOMENT = re.compile(
    r"\s*\+?(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?\s*([A-Za-z+-][\w/:+-]*)?)?)?)?\s*"
)
_DAY = re.compile(r"\s*\+?(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?\s*", re.DOTALL)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?")
_FURTHEST = timedelta(hours=18)
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def micros_of(value: object, zone: tzinfo) -> int | None:
    """A moment. A whole number counts seconds."""
    if type(value) is int:
        return value * 1_000_000 if abs(value) <= (1 << 63) // 1_000_000 else None
    parsed = _parse(value)
    if parsed is None:
        return None
    local, named = parsed
    try:
        offset = local.replace(tzinfo=zone_of(named) if named else zone).utcoffset()
    except ValueError:
        return None
    return (local - (offset or timedelta()) - _EPOCH) // _MICROSECOND


def local_micros_of(value: object) -> int | None:
    """The time of a wall clock, which has no zone."""
    parsed = _parse(value)
    return None if parsed is None or parsed[1] else (parsed[0] - _EPOCH) // _MICROSECOND


def day_of(value: object) -> int | None:
    """A day; a time behind it is passed over."""
    found = _DAY.fullmatch(value) if isinstance(value, str) else None
    if not found:
        return None
    try:
        return date(int(found[1]), int(found[2] or 1), int(found[3] or 1)).toordinal() - _EPOCH.toordinal()
    except ValueError:
        return None


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """The zone of that name, or `ValueError`."""
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset:
        hours, minutes, seconds = (int(part or 0) for part in offset.groups()[1:])
        span = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if span > _FURTHEST or minutes > 59 or seconds > 59:
            raise ValueError(f"no zone is {name} away")
        return timezone(span if offset[1] == "+" else -span)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as problem:
        raise ValueError(f"{name} is no time zone") from problem


def _parse(value: object) -> tuple[datetime, str | None] | None:
    found = _MOMENT.fullmatch(value) if isinstance(value, str) else None
    if not found:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    parts = (int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0))
    try:
        return datetime(*parts, int((fraction or "")[:6].ljust(6, "0"))), zone
    except ValueError:
        return None
