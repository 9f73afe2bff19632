"""Whether a run at work should end after its batch: a deploy changed the job; or, in mode auto, nothing comes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from lambdas.places import place_of
from lambdas.publish_freshness.ledger_log import newest_commit
from lambdas.start_ingest.stay_on import stays_on

__all__ = ["ask_to_stop", "idle", "outdated"]


def outdated(runs: Sequence[dict[str, Any]], job: dict[str, Any]) -> bool:
    """Whether a run still has a definition that a deployment has replaced. A run keeps the definition of its start."""
    return any(run["JobRunState"] == "RUNNING" and run["StartedOn"] < job["LastModifiedOn"] for run in runs)


def idle(runs: Sequence[dict[str, Any]], s3: Any, lake: str, *, now: datetime, minutes: int) -> bool:
    """Whether a run that stayed on has had no batch for so long. To be asked when nothing waits."""
    if not any(map(stays_on, runs)):
        return False
    batch = newest_commit(s3, lake)
    return batch is None or now - batch >= timedelta(minutes=minutes)


def ask_to_stop(s3: Any, checkpoint: str) -> None:
    """As `forebay stop` does: the job looks for this object, and removes it when it ends."""
    s3.put_object(**place_of(checkpoint, "stop"), Body=b"")
