"""The events of this function."""

from __future__ import annotations

from dataclasses import dataclass

from forebay.events import ServiceEvent, metric


@dataclass(frozen=True, kw_only=True)
class JobEnded(ServiceEvent):
    """A run of a job is over. `dpu_seconds` is what is billed for, save for a minimum that a run may have; None where Glue does
    not say. `failed` is 1 for a run that a person must look at."""

    job: str
    state: str
    seconds: float = metric("Seconds")
    dpu_seconds: float | None = metric("Seconds", default=None)
    failed: int = metric(default=0)
