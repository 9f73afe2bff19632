"""The events of all upkeep of tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forebay.events import TableEvent

__all__ = ["TableLeftForLater"]


@dataclass(frozen=True, kw_only=True)
class TableLeftForLater(TableEvent):
    """A table was left unchanged, or in part, and the next run takes it. Others worked on it (`reason` is busy or conflict),
    or the run was asked to stop."""

    reason: str
    detail: str

    REASONS: ClassVar = ("busy", "conflict", "stopped")
