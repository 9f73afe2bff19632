"""The events of the nightly audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from forebay.events import Event, metric

__all__ = ["AccountDiffers", "AccountsChecked"]


@dataclass(frozen=True, kw_only=True)
class AccountsChecked(Event):
    """The ledger was compared with the tables, file by file."""

    service: str
    files: int
    rows: int
    differences: int = metric()
    seconds: float


@dataclass(frozen=True, kw_only=True)
class AccountDiffers(Event):
    """A sum does not hold, and did not hold some minutes earlier either: `difference` says which."""

    level: ClassVar[str] = "error"

    service: str
    difference: str
