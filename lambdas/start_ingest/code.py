"""Which code the next run has: the job's own, or, where that breaks, the code that ran well before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from lambdas.start_ingest.last_good import WENT_BACK, Code, breaks, code_of, last_good, proven, remember

__all__ = ["code_for"]


def code_for(
    runs: Sequence[dict[str, Any]], job: dict[str, Any], *, s3: Any, checkpoint: str, now: datetime
) -> tuple[Code, bool]:
    """Arguments, none for the job's own code; and whether this is the first run to go back. Code that proved itself is kept."""
    mine = code_of(job)
    if proven(runs, job, now):
        if last_good(s3, checkpoint) != mine:
            remember(s3, checkpoint, mine)
        return {}, False
    if not breaks(runs, job, now):
        return {}, False
    good = last_good(s3, checkpoint)
    if not good or good == mine:
        return {}, False
    return good, WENT_BACK not in runs[0].get("Arguments", {})
