"""The events of maintenance."""

from __future__ import annotations

from dataclasses import dataclass

from forebay.events import ErrorEvent, ServiceEvent, TableEvent, metric


@dataclass(frozen=True, kw_only=True)
class TableMaintained(TableEvent):
    """Files that no version within the retention needs were deleted; the log got a checkpoint if one was due."""

    vacuum: str
    kept_hours: int | None
    files_deleted: int = metric()
    checkpoint: int | None
    properties: tuple[str, ...]
    seconds: float = metric("Seconds")


@dataclass(frozen=True, kw_only=True)
class TableNotMaintained(ErrorEvent, TableEvent):
    """A table was not processed, and the others continued."""

    reason: str
    detail: str
    tables: int = metric(default=1)


@dataclass(frozen=True, kw_only=True)
class OrphansFound(ServiceEvent):
    """Data files were found that no log names; they are `deleted` only on request."""

    place: str
    files: int
    bytes: int
    such_as: str
    deleted: bool


@dataclass(frozen=True, kw_only=True)
class ForeignFilesFound(TableEvent):
    """A table's folder has files that are not Delta's. A full VACUUM would delete them, so it was LITE: move them away."""

    files: int
    such_as: str


@dataclass(frozen=True, kw_only=True)
class MaintenanceEnded(ServiceEvent):
    """A run has ended."""

    tables: int = metric()
    tables_left: int = metric()
    files_deleted: int = metric()
    orphans: int = metric()
    orphan_bytes: int = metric("Bytes")
    seconds: float = metric("Seconds")
