"""Texts become times, in plain Python. Nothing is guessed.

In: a text. Out: microseconds or days since 1970, in the years 1 to 9999; None for anything else. A text is ISO 8601 with a
whole date, with or without a time, seconds and an offset. Digits after the sixth of a second's fraction are dropped.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import ROUND_FLOOR

from forebay.record.number import BLANK, WIDE, decimal_of

PLACES = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Decimal places of a second, for each unit that a number may count."""

OFFSET = r"(?: ?(Z|z|UTC|GMT)|([+-])(\d\d)(?::?(\d\d))?)?"
EXTENDED = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d)(?::(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?" + OFFSET + ")?", re.ASCII
)
BASIC = re.compile(r"(\d{4})(\d\d)(\d\d)[Tt](\d\d)(?:(\d\d)(?:(\d\d)(?:[.,](\d+))?)?)?" + OFFSET, re.ASCII)
LONGEST = 64
EPOCH = datetime(1970, 1, 1)
FIRST, AFTER = -62_135_596_800_000_000, 253_402_300_800_000_000
"""Microseconds since 1970, of the years 1 to 9999."""
MICROSECOND = timedelta(microseconds=1)
MICROS_OF_A_DAY = 86_400_000_000


def micros_of(text: str, zone: tzinfo = UTC) -> int | None:
    """A moment. A time without an offset is local to the zone."""
    found = _found(text)
    local = None if found is None else _local(found)
    if found is None or local is None:
        return None
    try:
        offset = _offset(found) if _has_offset(found) else local.replace(tzinfo=zone).utcoffset() or timedelta()
    except (ValueError, OverflowError):
        return None
    return _within((local - EPOCH - offset) // MICROSECOND)


def local_micros_of(text: str) -> int | None:
    """The time of a wall clock, which has no offset."""
    found = _found(text)
    local = None if found is None or _has_offset(found) else _local(found)
    return None if local is None else (local - EPOCH) // MICROSECOND


def day_of(text: str) -> int | None:
    """The date in the text, whatever the offset."""
    found = None if micros_of(text) is None else _found(text)
    return None if found is None else date(int(found[1]), int(found[2]), int(found[3])).toordinal() - EPOCH.toordinal()


def micros_since_1970(text: str, places: int) -> int | None:
    """The time of a number that counts units of this many decimal places of a second."""
    number = decimal_of(text)
    if number is None or number.adjusted() >= LONGEST:
        return None
    return _within(int(number.scaleb(6 - places, WIDE).to_integral_value(ROUND_FLOOR)))


def _found(text: str) -> re.Match[str] | None:
    if len(text) > LONGEST:
        return None
    written = text.strip(BLANK)
    return EXTENDED.fullmatch(written) or BASIC.fullmatch(written)


def _local(found: re.Match[str]) -> datetime | None:
    parts = [int(part or 0) for part in found.groups()[:6]]
    try:
        return datetime(*parts, microsecond=int((found[7] or "")[:6].ljust(6, "0")))  # type: ignore[arg-type,misc]
    except ValueError:
        return None


def _has_offset(found: re.Match[str]) -> bool:
    return bool(found[8] or found[9])


def _offset(found: re.Match[str]) -> timedelta:
    hours, minutes = int(found[10] or 0), int(found[11] or 0)
    if hours * 60 + minutes > 18 * 60 or minutes > 59:
        raise ValueError(f"no place is {hours}:{minutes} away")
    return timedelta(hours=hours, minutes=minutes) * (-1 if found[9] == "-" else 1)


def _within(micros: int) -> int | None:
    return micros if FIRST <= micros < AFTER else None
