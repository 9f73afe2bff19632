"""When all files of an hour, or of a day, are in: the declaration of a feed's periods.

In: `complete` of a feed. Out: the period of a file, the prefixes of a period's files, and the object that marks the period as
complete. Pure. A file that fits no period is in none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from typing import Literal
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator, model_validator

from forebay.declaration.column import Declared
from forebay.declaration.schedule import Zone
from forebay.landed_file import LandedFile

LENGTHS = {"hour": timedelta(hours=1), "day": timedelta(days=1)}
DIGITS = {"Y": 4, "m": 2, "d": 2, "H": 2}
TOKEN = re.compile(r"%(.?)|(\*)")
YEARS = range(1970, 9999)
"""Those that a key may name. At both ends of what Python can hold, adding a day is an error."""
TIMES_DIFFER = timedelta(minutes=1)
"""S3's listing and its notification of one object may name different seconds."""


@dataclass(frozen=True, order=True)
class Period:
    """From `start`, until before `end`, in UTC."""

    start: datetime
    end: datetime

    def __str__(self) -> str:
        return f"{self.start:%Y-%m-%dT%H:%MZ}"


class Complete(Declared):
    """The periods of a feed, and when all files of one are in."""

    folder: str = Field(
        "",
        description="the prefix of a period's keys, such as in/%Y/%m/%d/%H/, where * is any text within one level; "
        "empty: the time at which S3 received a file decides",
    )
    period: Literal["hour", "day"] = Field("hour", description="the length of a period")
    zone: Zone = Field("UTC", description="the time zone of the hours and days, such as Asia/Tokyo")
    marker: str = Field(
        "", description="a period is complete when this object is in its folder, such as _SUCCESS; it is not loaded"
    )
    manifest: str = Field(
        "",
        description='the same, if the object says how many files and records there are: {"files": 12, "records": 3400}',
    )
    quiet_minutes: int = Field(
        0, ge=0, le=10_000, description="a period is complete when it is over and no file has arrived for this long"
    )

    @field_validator("folder")
    @classmethod
    def _names_times(cls, value: str) -> str:
        for token, star in TOKEN.findall(value):
            if not star and token not in DIGITS:
                raise ValueError(f"has %{token}; use %Y, %m, %d and %H")
        if value.startswith(("/", "s3:")):
            raise ValueError("must be a prefix of keys, such as in/%Y/%m/%d/%H/, without a bucket")
        return value

    @field_validator("marker", "manifest")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        if "/" in value or "%" in value or "*" in value:
            raise ValueError(f"{value!r} must be the name of an object in the folder, such as _SUCCESS")
        return value

    @model_validator(mode="after")
    def _has_one_rule(self) -> Complete:
        if sum(map(bool, (self.marker, self.manifest, self.quiet_minutes))) != 1:
            raise ValueError("needs exactly one of marker, manifest and quiet_minutes")
        if (self.marker or self.manifest) and not self.folder:
            raise ValueError("a marker or a manifest needs a folder, such as in/%Y/%m/%d/%H/")
        wanted = "YmdH" if self.period == "hour" else "Ymd"
        there = {token for token, _ in TOKEN.findall(self.folder) if token}
        if self.folder and there != set(wanted):
            names = ", ".join(f"%{token}" for token in wanted)
            days = '; for days, write period = "day"' if there == set("Ymd") else ""
            raise ValueError(f'the folder of a period must have {names} for period = "{self.period}"{days}')
        return self

    @cached_property
    def _tz(self) -> ZoneInfo:
        return ZoneInfo(self.zone)

    def period_of(self, file: LandedFile) -> Period | None:
        """The period of a file; None if neither its key nor its time names one, or if clocks skip that hour."""
        try:
            local = self._local_time_of(file)
            period = None if local is None or local.year not in YEARS else self._at(local)
        except (ValueError, OverflowError):
            return None
        return period if period and period.start < period.end else None

    def _local_time_of(self, file: LandedFile) -> datetime | None:
        """The hour that its key names, or when S3 received it."""
        if not self.folder:
            return file.event_time.astimezone(self._tz) if file.event_time else None
        found = _pattern(self.folder).match(file.key)
        if found is None:
            return None
        year, month, day, hour = (int(found.groupdict().get(f"_{token}", 0)) for token in DIGITS)
        return datetime(year, month, day, hour, tzinfo=self._tz)

    def _at(self, local: datetime) -> Period:
        """By the clock of the time zone: a day may have 23 hours, and a repeated hour is one period."""
        start = local.replace(minute=0, second=0, microsecond=0, fold=0)
        start = start.replace(hour=0) if self.period == "day" else start
        return Period(_moment_of(start), _moment_of(start + LENGTHS[self.period]))

    def period_before(self, moment: datetime) -> Period:
        """The one that holds the time right before this moment."""
        return self._at((moment - timedelta(microseconds=1)).astimezone(self._tz))

    def has(self, period: Period) -> bool:
        """Whether this is one of its periods. An earlier declaration may have had others, with the same start."""
        return self.period_before(period.end) == period

    def may_be_in(self, period: Period, file: LandedFile) -> bool:
        """Whether a file may be in it, even if S3 reports a slightly different time."""
        if self.folder or file.event_time is None:
            return self.period_of(file) == period
        return period.start - TIMES_DIFFER <= file.event_time < period.end + TIMES_DIFFER

    def folder_of(self, file: LandedFile) -> str:
        """The beginning of the key that names the period; empty if none does."""
        found = _pattern(self.folder).match(file.key) if self.folder else None
        return found[0] if found else ""

    def is_said_by(self, file: LandedFile) -> bool:
        """Whether it is a marker or a manifest, not data."""
        name, folder = self.marker or self.manifest, self.folder_of(file)
        return bool(name and folder) and file.key == folder + name and not file.is_deletion

    def prefixes(self, period: Period, below: Callable[[str], Sequence[str]]) -> list[str]:
        """The prefixes of all files of the period. `below` lists the folders with a prefix; it is called only if there is a
        *."""
        local = period.start.astimezone(self._tz)
        folder = re.sub("%([YmdH])", lambda token: local.strftime(token[0]).zfill(DIGITS[token[1]]), self.folder)
        return [*_expanded("", folder, below)]


def _moment_of(local: datetime) -> datetime:
    """When the clocks show a time for the first time, or jump over it."""
    late, early = local.astimezone(UTC), local.replace(fold=1).astimezone(UTC)
    if early >= late:
        return late
    while late - early > timedelta(seconds=1):
        middle = early + (late - early) // 2
        has_jumped = middle.astimezone(local.tzinfo).utcoffset() == late.astimezone(local.tzinfo).utcoffset()
        early, late = (early, middle) if has_jumped else (middle, late)
    return late.replace(microsecond=0)


def _expanded(done: str, rest: str, below: Callable[[str], Sequence[str]]) -> Iterator[str]:
    head, star, tail = rest.partition("*")
    level, slash, after = tail.partition("/")
    if not star or not slash:
        yield done + head
        return
    meant = re.compile(re.escape(done + head) + "[^/]*" + "[^/]*".join(map(re.escape, level.split("*"))) + "/")
    for folder in below(done + head):
        if meant.fullmatch(folder):
            yield from _expanded(folder, after, below)


@lru_cache(maxsize=100)
def _pattern(folder: str) -> re.Pattern[str]:
    seen: set[str] = set()

    def written(token: re.Match[str]) -> str:
        name = f"_{token[1]}"
        if token[2]:
            return "[^/]*"
        if name in seen:
            return f"(?P={name})"
        seen.add(name)
        return f"(?P<{name}>[0-9]{{{DIGITS[token[1]]}}})"

    parts, at = [], 0
    for token in TOKEN.finditer(folder):
        parts += [re.escape(folder[at : token.start()]), written(token)]
        at = token.end()
    return re.compile("".join(parts) + re.escape(folder[at:]))
