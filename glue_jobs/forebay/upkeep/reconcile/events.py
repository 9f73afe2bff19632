"""The events of reconcile."""

from __future__ import annotations

from dataclasses import dataclass

from forebay.events import ServiceEvent, metric

__all__ = ["FilesReconciled"]


@dataclass(frozen=True, kw_only=True)
class FilesReconciled(ServiceEvent):
    """The files of the last days were held against the ledger. Of `missed` ones it knew nothing, hours after they were written;
    they are announced now, save those that the queue `refused`. So are those that S3 had `withheld`, and those that `may_wait`
    in the queue."""

    files: int = metric()
    missed: int = metric()
    may_wait: int = 0
    withheld: int = metric(default=0)
    refused: int = 0
    such_as: str = ""
    seconds: float
