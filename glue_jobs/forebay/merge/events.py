"""The events of a merge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forebay.events import Event, metric

__all__ = ["MergeEnded", "TableMerged", "TableNotMerged", "TableRolledUp"]


@dataclass(frozen=True, kw_only=True)
class TableMerged(Event):
    """A state was brought to a version of its log. `keys` are those with a change that did not come too late. `computed_anew`
    says why, where the whole log was read. `lag_s` is how long the oldest change had waited."""

    service: str
    table: str
    log: str
    version: int
    keys: int = metric()
    rows_inserted: int = metric()
    rows_updated: int = metric()
    rows_deleted: int = metric()
    lag_s: float = metric("Seconds")
    computed_anew: str | None = None
    seconds: float = metric("Seconds")


@dataclass(frozen=True, kw_only=True)
class TableNotMerged(Event):
    """A state stays behind its log, and the others continued. A person must look."""

    level: ClassVar[str] = "error"

    service: str
    table: str
    reason: str
    detail: str
    tables: int = metric(default=1)


@dataclass(frozen=True, kw_only=True)
class TableRolledUp(Event):
    """A rollup was brought up to date. `groups` were computed again, and `lag_s` is how long the oldest change had waited."""

    service: str
    table: str
    version: int
    groups: int = metric()
    lag_s: float = metric("Seconds")
    computed_anew: str | None = None
    seconds: float = metric("Seconds")


@dataclass(frozen=True, kw_only=True)
class MergeEnded(Event):
    """A run is over."""

    service: str
    tables: int = metric()
    tables_left: int = metric()
    seconds: float = metric("Seconds")
