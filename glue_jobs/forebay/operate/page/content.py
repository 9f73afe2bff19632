"""The content of a status page, as plain values. Each source fills its part of a `Page`. Unknown values are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

AT_WORK = ("STARTING", "RUNNING", "STOPPING", "WAITING", "SUBMITTED", "PENDING", "SCHEDULED")
FAILED = ("FAILED", "ERROR", "TIMEOUT")


@dataclass(frozen=True)
class Station:
    """One stop of the journey: a number with a few words."""

    name: str
    number: str
    says: str = ""
    is_bad: bool = False
    is_end: bool = False
    """Files leave the journey there: no arrow leads to it from the stop before."""


@dataclass(frozen=True)
class Chart:
    """A number by the hour. `form` shows one of them, such as `{:,.0f} s`."""

    title: str
    values: tuple[tuple[datetime, float], ...]
    form: str = "{:,.0f}"
    says: str = ""


@dataclass(frozen=True)
class TableLine:
    """`rows` by hour; `state` says what keeps rows out, such as `paused`. None and an empty `rows` are unknown."""

    name: str
    rows: tuple[int, ...] = ()
    files: int | None = None
    small_files: int | None = None
    bytes: int | None = None
    newest_at: datetime | None = None
    state: str = ""


@dataclass(frozen=True)
class Reason:
    """Records in the quarantine. `newest_at` and the table are unknown where only metrics are asked."""

    reason: str
    records: int
    table: str = ""
    newest_at: datetime | None = None


@dataclass(frozen=True)
class Run:
    job: str
    state: str
    began_at: datetime
    seconds: float
    error: str = ""
    dpu_seconds: float = 0.0
    is_flex: bool = False

    @property
    def is_bad(self) -> bool:
        return self.state in FAILED

    @property
    def is_at_work(self) -> bool:
        return self.state in AT_WORK


@dataclass(frozen=True)
class Cost:
    """The cost of this month so far, in USD by part; `says` names the prices, and what is not included."""

    usd: Mapping[str, float]
    says: str

    @property
    def total(self) -> float:
        return sum(self.usd.values())


@dataclass(frozen=True)
class Page:
    """`troubles`: sentences, each on something to look at. `notes`: unknown values, with reasons."""

    name: str
    at: datetime
    troubles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    journey: tuple[Station, ...] = ()
    charts: tuple[Chart, ...] = ()
    tables: tuple[TableLine, ...] = ()
    reasons: tuple[Reason, ...] = ()
    runs: tuple[Run, ...] | None = None
    cost: Cost | None = None
    counts: Mapping[str, str] = field(default_factory=dict)
    """More numbers, by what they count."""

    @property
    def title(self) -> str:
        """The text on the tab of a browser."""
        return f"{len(self.troubles)} to look at: {self.name}" if self.troubles else f"well: {self.name}"


def age(now: datetime, then: datetime) -> str:
    return f"{span(max(0.0, (now - then).total_seconds()))} ago"


def span(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
