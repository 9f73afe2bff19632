"""The events of a merge."""

from __future__ import annotations

from dataclasses import dataclass

from forebay.events import ErrorEvent, ServiceEvent, TableEvent, metric

__all__ = ["MergeEnded", "TableMerged", "TableNotMerged", "TableRolledUp"]


@dataclass(frozen=True, kw_only=True)
class TableMerged(TableEvent):
    """A state was brought to a version of its log. `keys` are those with a change that did not come too late. `computed_anew`
    says why, where the whole log was read. `lag_s` is how long the oldest change had waited."""

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
    """A state stays behind its log, and the others continued. A person must look."""

    reason: str
    detail: str
    tables: int = metric(default=1)


@dataclass(frozen=True, kw_only=True)
class TableRolledUp(TableEvent):
    """A rollup was brought up to date. `groups` were computed again, and `lag_s` is how long the oldest change had waited."""

    version: int
    groups: int = metric()
    lag_s: float = metric("Seconds")
    computed_anew: str | None = None
    seconds: float = metric("Seconds")


@dataclass(frozen=True, kw_only=True)
class MergeEnded(ServiceEvent):
    """A run is over."""

    tables: int = metric()
    tables_left: int = metric()
    seconds: float = metric("Seconds")
