"""The things that a look finds: runs, the queue's count, how fast the job works, and since when files wait.

The queue does not say when a file came. So a look that first sees files waiting notes its time beside the checkpoint. A note
that is older than the newest run is of files that this run took, unless it failed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from forebay.capacity.pace import NAME, Pace
from forebay.capacity.rules import DAY_S, Rules, Run, Seen
from lambdas.places import place_of
from lambdas.start_ingest.why_not import AT_WORK, FAILED

__all__ = ["WAITING", "drains", "look", "told_today"]

WAITING = "waiting.json"
"""Of the note beside the checkpoint."""


def look(
    rules: Rules, listed: Sequence[dict[str, Any]], waiting: int, *, s3: Any, checkpoint: str, now: datetime
) -> Seen:
    at, runs = now.timestamp(), [Run(*_times(run)) for run in listed]
    pace = Pace.of(_read(s3, checkpoint, NAME))
    staying = any(run["JobRunState"] == "RUNNING" and not drains(run) for run in listed)
    since = _waiting_since(rules, at, listed, pace, s3, checkpoint) if waiting and not staying else None
    return Seen(at, waiting, since, pace, runs, staying)


def drains(run: dict[str, Any]) -> bool:
    return bool(run.get("Arguments", {}).get("--drain") == "true")


def _waiting_since(
    rules: Rules, now: float, listed: Sequence[dict[str, Any]], pace: Pace, s3: Any, checkpoint: str
) -> float:
    runs = [Run(*_times(run)) for run in listed if run["JobRunState"] not in FAILED]
    newest = max((run.began_at for run in runs), default=0.0)
    note = _note(s3, checkpoint)
    if newest < note.get("since", 0.0) <= now:
        return note["since"]
    since = rules.first_seen(now, runs, pace)
    _put_note(s3, checkpoint, {**note, "since": max(since, newest + 1)})
    return since


def told_today(s3: Any, checkpoint: str, now: datetime) -> bool:
    """Whether the message that the budget makes files late went out within a day. If not, this notes that it does now."""
    note, at = _note(s3, checkpoint), now.timestamp()
    if at - note.get("told_at", 0.0) < DAY_S:
        return True
    _put_note(s3, checkpoint, {**note, "told_at": at})
    return False


def _note(s3: Any, checkpoint: str) -> dict[str, float]:
    note: dict[str, float] = json.loads(_read(s3, checkpoint, WAITING) or "{}")
    return note


def _put_note(s3: Any, checkpoint: str, note: dict[str, float]) -> None:
    s3.put_object(**place_of(checkpoint, WAITING), Body=json.dumps(note).encode())


def _times(run: dict[str, Any]) -> tuple[float, float | None]:
    ended = None if run["JobRunState"] in AT_WORK else run.get("CompletedOn") or run["StartedOn"]
    return run["StartedOn"].timestamp(), ended and ended.timestamp()


def _read(s3: Any, checkpoint: str, name: str) -> bytes | None:
    try:
        content: bytes = s3.get_object(**place_of(checkpoint, name))["Body"].read()
    except s3.exceptions.NoSuchKey:
        return None
    return content
