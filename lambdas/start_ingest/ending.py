"""Whether a run at work should end after its batch, because a deploy changed the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lambdas.places import place_of

__all__ = ["ask_to_stop", "outdated"]


def outdated(runs: Sequence[dict[str, Any]], job: dict[str, Any]) -> bool:
    """Whether a run still has a definition that a deployment has replaced. A run keeps the definition of its start."""
    return any(run["JobRunState"] == "RUNNING" and run["StartedOn"] < job["LastModifiedOn"] for run in runs)


def ask_to_stop(s3: Any, checkpoint: str) -> None:
    """As `forebay stop` does: the job looks for this object, and removes it when it ends."""
    s3.put_object(**place_of(checkpoint, "stop"), Body=b"")
