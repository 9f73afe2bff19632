"""The events of all upkeep of tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forebay.events import TableEvent


@dataclass(frozen=True, kw_only=True)
class TableLeftForLater(TableEvent):
    """A table was not processed, or only in part, and the next run continues. Other jobs worked on it (`reason` is busy or
    conflict), or the run was asked to stop."""

    reason: str
    detail: str

    REASONS: ClassVar = ("busy", "conflict", "stopped")
