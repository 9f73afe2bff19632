"""Chooses the code of the next run: the job's own or, if that breaks, the code that ran well before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lambdas.start_ingest.last_good import (
    WENT_BACK,
    breaks,
    definition_of,
    last_good,
    proven,
    remember,
    request,
    stays,
)

__all__ = ["Code", "code_for"]


@dataclass(frozen=True)
class Code:
    """The request of the next run: empty for the job's own code. `stays` are parts that cannot go back, and `is_first` says
    whether the run before had the job's own code."""

    request: dict[str, Any] = field(default_factory=dict)
    stays: tuple[str, ...] = ()
    is_first: bool = False


def code_for(
    runs: Sequence[dict[str, Any]],
    job: dict[str, Any],
    *,
    s3: Any,
    checkpoint: str,
    batch_since: Callable[[datetime], bool],
) -> Code:
    """Code that proved itself is remembered."""
    mine, good = definition_of(job), last_good(s3, checkpoint, job["Name"])
    if good == mine:
        return Code()
    if proven(runs, job, batch_since):
        remember(s3, checkpoint, mine)
        return Code()
    if not good or not breaks(runs, job):
        return Code()
    return Code(request(good, mine), tuple(stays(good, mine)), WENT_BACK not in runs[0].get("Arguments", {}))
