"""What this function says."""

from __future__ import annotations

from dataclasses import dataclass

from forebay.events import Event, metric

__all__ = ["FreshnessMeasured"]


@dataclass(frozen=True, kw_only=True)
class FreshnessMeasured(Event):
    """How far the lake is behind. `waiting` nobody took yet, `held` a job has in hand, `dead` needs a person.
    `since_batch_seconds` is the age of the ledger's newest commit; None before the first."""

    service: str
    waiting: int = metric()
    held: int = metric()
    dead: int = metric()
    since_batch_seconds: float | None = metric("Seconds", default=None)
