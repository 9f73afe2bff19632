"""The events of compaction."""

from __future__ import annotations

from dataclasses import dataclass

from forebay.events import ErrorEvent, ServiceEvent, TableEvent, metric


@dataclass(frozen=True, kw_only=True)
class TableCompacted(TableEvent):
    """Small files of a table became large ones. `foretold_files` is the number that the plan predicted."""

    partitions: int
    commits: int
    version: int
    files_removed: int = metric()
    files_added: int = metric()
    foretold_files: int
    bytes_read: int = metric("Bytes")
    bytes_written: int = metric("Bytes")
    conflicts: int = metric()
    seconds: float = metric("Seconds")


@dataclass(frozen=True, kw_only=True)
class TableNotCompacted(ErrorEvent, TableEvent):
    """A table was not compacted, or only in part, and the others continued. A person must act: `reason` is not-found,
    unsupported, unreadable-log, invalid-configuration or failed."""

    reason: str
    detail: str
    tables: int = metric(default=1)


@dataclass(frozen=True, kw_only=True)
class CompactionEnded(ServiceEvent):
    """A run has ended. `planned_dpu_seconds` is its predicted cost."""

    round: str
    tables: int = metric()
    tables_left: int = metric()
    files_removed: int = metric()
    files_added: int = metric()
    bytes_read: int = metric("Bytes")
    conflicts: int = metric()
    planned_dpu_seconds: float = metric("Seconds")
    seconds: float = metric("Seconds")
