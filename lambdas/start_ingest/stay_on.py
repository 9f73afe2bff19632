"""Mode auto: whether the next run of the ingest job drains and ends, or stays on, and when one that stayed on is done.

A start has its price: time until the first batch, and whatever Glue bills at least. When runs follow each other so closely that
they fill most of an hour, one that stays on costs no more, and its rows are fresher. Data in, an answer out.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

__all__ = ["busy_percent", "stays_on"]

LOOKED_BACK = timedelta(hours=1)


def busy_percent(runs: Sequence[dict[str, Any]], now: datetime) -> float:
    """How much of the last hour was filled by runs. Those that failed are none: they would keep a broken job on."""
    since = now - LOOKED_BACK
    spans = [
        (max(run["StartedOn"], since), run.get("CompletedOn") or now)
        for run in runs
        if run["JobRunState"] in ("SUCCEEDED", "RUNNING")
    ]
    seconds: float = sum(max(0.0, (end - start).total_seconds()) for start, end in spans)
    return 100 * seconds / LOOKED_BACK.total_seconds()


def stays_on(run: dict[str, Any]) -> bool:
    drains = run.get("Arguments", {}).get("--drain") == "true"
    return bool(run["JobRunState"] == "RUNNING" and not drains)
