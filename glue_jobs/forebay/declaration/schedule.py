"""The declaration of a schedule: at which hours a job of upkeep runs, for which tables.

In: `[schedules.NAME]` of service.toml, with times as people write them. Out: frozen values for a scheduler. `USUAL` has the
default schedules; a declared schedule replaces the default one of the same name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Literal
from zoneinfo import available_timezones

from pydantic import AfterValidator, Field, model_validator

from forebay.declaration.column import Declared

NEVER = "never"
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_AT = re.compile(rf"(daily|{_DAY}(?:-{_DAY}|(?:,{_DAY})*)) ([01]\d|2[0-3]):([0-5]\d)")
_ZONE = re.compile(r"[A-Z][A-Za-z0-9_+-]*(/[A-Z][A-Za-z0-9_+-]*)*")


def _time(value: str) -> str:
    if value != NEVER and not _AT.fullmatch(value):
        raise ValueError("must be daily 04:00, Sun 02:30, Mon-Sat 04:00, Mon,Thu 04:00, or never")
    return value


_zones = lru_cache(available_timezones)
"""Each call opens 600 files."""


def _zone(value: str) -> str:
    # Where a machine has no list of zones (a slim image), a name that could be one is taken: the scheduler knows them all.
    zones = _zones()
    if value not in zones if zones else not _ZONE.fullmatch(value):
        raise ValueError("must be a time zone's name, such as Europe/Berlin or UTC")
    return value


Zone = Annotated[str, AfterValidator(_zone)]


class Schedule(Declared):
    """A job that runs repeatedly."""

    job: Literal["compact", "maintain", "reconcile"] = Field(
        description="compact: small files into large ones; maintain: delete old files; reconcile: files that S3 never announced"
    )
    at: Annotated[str, AfterValidator(_time)] = Field(
        description="when: daily 04:00, Sun 02:30, Mon-Sat 04:00, Mon,Thu 04:00, or never"
    )
    zone: Zone = Field(
        "UTC", description="the time zone of these hours, such as Asia/Tokyo; follows daylight saving time"
    )
    group: str = Field(
        "",
        description="for compact: only tables of this group; with round first, no other run compacts them",
    )
    round: Literal["first", "second"] = Field(
        "first",
        description="for compact: first makes medium files of small ones; second (weekly) makes large, ordered files of those",
    )
    vacuum: Literal["lite", "full"] = Field(
        "lite",
        description="for maintain: lite deletes files that the log no longer needs; full (weekly) all other files, too",
    )

    @model_validator(mode="after")
    def _says_what_its_job_knows(self) -> Schedule:
        others = {"compact": ("vacuum",), "maintain": ("group", "round")}.get(self.job, ("group", "round", "vacuum"))
        foreign = [name for name in others if getattr(self, name) != type(self).model_fields[name].default]
        if foreign:
            raise ValueError(f"{', '.join(foreign)}: the job {self.job} has no such setting")
        return self

    @property
    def days(self) -> str:
        """The days in the words of a cron expression: `*` for each day, or such as MON-SAT."""
        found = _AT.fullmatch(self.at)
        return "" if found is None else "*" if found[1] == "daily" else found[1].upper()

    @property
    def hour_and_minute(self) -> tuple[int, int]:
        found = _AT.fullmatch(self.at)
        return (0, 0) if found is None else (int(found[2]), int(found[3]))

    @property
    def arguments(self) -> dict[str, str]:
        """The arguments of the job."""
        if self.job == "maintain":
            return {"--vacuum": self.vacuum}
        if self.job == "reconcile":
            return {}
        return {"--round": self.round} | ({"--group": self.group} if self.group else {})


USUAL: Mapping[str, Schedule] = {
    "order-tables": Schedule(job="compact", at="Sun 02:30", round="second"),
    "vacuum": Schedule(job="maintain", at="Mon-Sat 04:00", vacuum="lite"),
    "vacuum-all": Schedule(job="maintain", at="Sun 04:00", vacuum="full"),
    "reconcile": Schedule(job="reconcile", at="daily 01:00"),
}
"""The default schedules, at hours in which little arrives near UTC. The planner compacts small files sooner."""


def schedules_of(declared: Mapping[str, Schedule]) -> dict[str, Schedule]:
    """All that are in force, by name."""
    return {name: one for name, one in {**USUAL, **declared}.items() if one.at != NEVER}
