"""The events of the nightly audit."""

from __future__ import annotations

from dataclasses import dataclass

from forebay.events import ErrorEvent, ServiceEvent, metric


@dataclass(frozen=True, kw_only=True)
class AccountsChecked(ServiceEvent):
    """The ledger was compared with the tables, file by file."""

    files: int
    rows: int
    differences: int = metric()
    seconds: float


@dataclass(frozen=True, kw_only=True)
class AccountDiffers(ErrorEvent, ServiceEvent):
    """A sum does not hold, and did not hold some minutes earlier either. `difference` describes it."""

    difference: str
