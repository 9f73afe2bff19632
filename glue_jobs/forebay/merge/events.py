"""The events of a merge."""

from __future__ import annotations

from dataclasses import dataclass

from forebay.events import ErrorEvent, ServiceEvent, TableEvent, metric


@dataclass(frozen=True, kw_only=True)
class TableMerged(TableEvent):
    """A state was updated to a version of its log. `keys` are those with a change that was not too late. `computed_anew` has
    the reason if the whole log was read. `lag_s` is the time that the oldest change had waited."""

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
class TableNotMerged(ErrorEvent, TableEvent):
    """A state lags behind its log, and the others continued. A person must act."""

    reason: str
    detail: str
    tables: int = metric(default=1)


@dataclass(frozen=True, kw_only=True)
class TableRolledUp(TableEvent):
    """A rollup was updated. `groups` were recomputed, and `lag_s` is the time that the oldest change had waited."""

    version: int
    groups: int = metric()
    lag_s: float = metric("Seconds")
    computed_anew: str | None = None
    seconds: float = metric("Seconds")


@dataclass(frozen=True, kw_only=True)
class MergeEnded(ServiceEvent):
    """A run has ended."""

    tables: int = metric()
    tables_left: int = metric()
    seconds: float = metric("Seconds")
