"""The events of reconcile."""

from __future__ import annotations

from dataclasses import dataclass

from forebay.events import ServiceEvent, metric


@dataclass(frozen=True, kw_only=True)
class FilesReconciled(ServiceEvent):
    """The files of the last days were compared with the ledger. `missed` files were not in the ledger, hours after they were
    written; they have been announced, except those that the queue `refused`. So have files that S3 had `withheld`, and those
    that `may_wait` in the queue."""

    files: int = metric()
    missed: int = metric()
    may_wait: int = 0
    withheld: int = metric(default=0)
    refused: int = 0
    such_as: str = ""
    seconds: float
