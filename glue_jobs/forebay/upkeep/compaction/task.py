"""One partition to rewrite, or to skip: plain values, made by the plan, read by the executor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from forebay.counted import counted
from forebay.lake.log.live_file import Partition
from forebay.upkeep.compaction.policy import Way


@dataclass(frozen=True, kw_only=True)
class Task:
    """One partition to rewrite, with the engine's options.

    `reasons`: small-files, small-bytes, settled, deletions, unordered, hot. `files` are the paths of those that we expect
    to be rewritten; `files_before` and `files_after` count the whole partition. `bytes` are read, `bytes_after` written.
    """

    table: str
    version: int
    group: str
    partition: Partition
    reasons: tuple[str, ...]
    way: Way
    files: tuple[str, ...]
    files_before: int
    files_after: int
    bytes: int
    bytes_after: int
    dpu_s: float
    target_file_bytes: int
    small_below_bytes: int
    max_deleted_share: float
    order_by: tuple[str, ...]
    ordering: bool

    @property
    def hot(self) -> bool:
        return "hot" in self.reasons

    @property
    def into(self) -> int:
        """How many files the rewritten ones become; the n of `repartition(n)`."""
        return self.files_after - self.files_before + len(self.files)

    @property
    def saved(self) -> int:
        return self.files_before - self.files_after

    def as_row(self) -> dict[str, Any]:
        return {
            "do": self.way,
            "table": self.table,
            "partition": partition_name(self.partition),
            "why": ", ".join(self.reasons),
            "files_before": self.files_before,
            "files_after": self.files_after,
            "bytes": self.bytes,
            "dpu_s": round(self.dpu_s, 1),
            "detail": f"ordered by {', '.join(self.order_by) or 'the table'}" if self.ordering else "",
        }


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A skipped partition, and why. If `partition` is None, it stands for a number of `partitions` of the table.

    `reason`: already-good, below-thresholds, too-hot, first-round-first, over-budget, larger-than-budget, other-group,
    clustered, cannot-order, and those of `BAD`, about which a person must do something.
    """

    table: str
    reason: str
    detail: str = ""
    partition: Partition | None = None
    partitions: int = 0
    files: int = 0
    bytes: int = 0

    BAD: ClassVar = ("not-found", "unsupported", "unreadable-log", "invalid-configuration")

    @property
    def bad(self) -> bool:
        return self.reason in self.BAD

    def as_row(self) -> dict[str, Any]:
        several = counted(self.partitions, "partition") if self.partition is None and self.partitions else ""
        return {
            "do": "skip",
            "table": self.table,
            "partition": several or partition_name(self.partition),
            "why": self.reason,
            "files_before": self.files,
            "files_after": self.files,
            "bytes": self.bytes,
            "dpu_s": 0.0,
            "detail": self.detail,
        }


def partition_name(partition: Partition | None) -> str:
    """The partition's name for people: `day=2026-05-01/game=null`; empty for a table without partitions."""
    return "/".join(f"{column}={'null' if value is None else value}" for column, value in partition or ())
