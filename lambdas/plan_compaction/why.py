"""Whether a table is worth starting the compaction job: its health in, a reason or nothing out. The fields are those of
`forebay.lake.health.Health`."""

from __future__ import annotations

from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from forebay.counted import counted

FIELDS = {"table", "waiting", "hot_wakes_at", "newest_at", "cold_after_s", "wakes_at", "small_files", "measured_at"}
"""The fields that are asked here. An object without one is of another version, and its table's next batch replaces it."""
NOT_LOOKED_AT = timedelta(days=7)


def why(health: dict[str, Any], now: datetime) -> str:
    waiting, hot_at = health["waiting"], health["hot_wakes_at"]
    if hot_at is not None and waiting >= hot_at:
        return counted(waiting, "small file", "waits")
    cold = age(health["newest_at"], now) >= timedelta(seconds=health["cold_after_s"])
    if waiting >= health["wakes_at"] and cold:
        return f"{counted(waiting, 'small file', 'waits')}, and no data arrived recently"
    if health["small_files"] > 1 and cold and age(health["measured_at"], now) >= NOT_LOOKED_AT:
        return "not checked for a week"
    return ""


def waits(table: str, patterns: str) -> bool:
    """Whether the clock, and not its need, starts a table's compaction. The first pattern that fits counts; `!` says no."""
    fits = (one for one in patterns.split(",") if fnmatchcase(table, one.removeprefix("!")))
    return not next(fits, "!").startswith("!")


def age(moment: str | None, now: datetime) -> timedelta:
    return now - datetime.fromisoformat(moment) if moment else timedelta.max
