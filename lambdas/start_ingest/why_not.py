"""Whether the job's earlier runs speak against another one: data in, a reason or nothing out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from forebay.counted import counted

AT_WORK = ("STARTING", "RUNNING", "STOPPING", "WAITING")
FAILED = ("FAILED", "ERROR", "TIMEOUT")
LONGEST_PAUSE_MINUTES = 60


def why_not(runs: Sequence[dict[str, Any]], now: datetime) -> str:
    """Newest run first, as Glue lists them. After each failure in a row the pause doubles, up to an hour."""
    states = [run["JobRunState"] for run in runs]
    if any(state in AT_WORK for state in states):
        return "it is already running"
    if states[:1] == ["STOPPED"]:
        return "somebody stopped it: start it by hand to continue"
    failures = next((n for n, state in enumerate(states) if state not in FAILED), len(states))
    if not failures:
        return ""
    ended = runs[0].get("CompletedOn") or runs[0]["StartedOn"]
    again_at = ended + timedelta(minutes=min(2 ** (failures - 1), LONGEST_PAUSE_MINUTES))
    return f"failed {counted(failures, 'time')} in a row: waiting" if now < again_at else ""
