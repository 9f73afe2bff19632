"""A data file that a version of its table consists of."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

Partition = tuple[tuple[str, str | None], ...]
"""A partition's columns and values, in the table's order; a value is text as in the log, or None for null."""


class LiveFile(NamedTuple):
    """`rows` counts the deleted ones too; None: not in the log. A tuple, because a lake may have millions of them."""

    path: str
    partition: Partition
    bytes: int
    rows: int | None
    modified: datetime
    deleted_rows: int = 0

    @property
    def deleted_share(self) -> float:
        """1.0 if rows are deleted and the number of rows is unknown: Delta does the same, and a rewrite fixes it."""
        if not self.deleted_rows:
            return 0.0
        return min(1.0, self.deleted_rows / self.rows) if self.rows else 1.0

    @property
    def live_bytes(self) -> int:
        """The approximate bytes that remain without the deleted rows."""
        if not self.deleted_rows or not self.rows:
            return self.bytes
        return self.bytes * max(0, self.rows - self.deleted_rows) // self.rows

    def removal(self, at_ms: int) -> dict[str, Any]:
        """The action of a commit that takes it out of the table."""
        known = {"path": self.path, "partitionValues": dict(self.partition), "size": self.bytes}
        return {"remove": {**known, "deletionTimestamp": at_ms, "dataChange": True, "extendedFileMetadata": True}}
