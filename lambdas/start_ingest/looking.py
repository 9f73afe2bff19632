"""The things that a look finds: runs, the queue's count, how fast the job works, and since when files wait.

The queue does not say when a file came. So a look that first sees files waiting notes its time beside the checkpoint. A note
that is older than the newest run is of files that this run took, unless it failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from forebay.capacity.pace import NAME, Pace
from forebay.capacity.rules import Rules, Run, Seen
from forebay.capacity.waiting import NAME as NOTE
from forebay.capacity.waiting import Waiting
from lambdas.places import place_of
from lambdas.start_ingest.why_not import AT_WORK, FAILED


def look(
    rules: Rules, listed: Sequence[dict[str, Any]], waiting: int, *, s3: Any, checkpoint: str, now: datetime
) -> tuple[Seen, Waiting]:
    """Its note, too."""
    at, runs = now.timestamp(), [Run(*_times(run)) for run in listed]
    pace = Pace.of(_read(s3, checkpoint, NAME))
    staying = any(run["JobRunState"] == "RUNNING" and not drains(run) for run in listed)
    if staying or not waiting:
        return Seen(at, waiting, None, pace, runs, staying), Waiting()
    note = _noted(rules, at, listed, pace, s3, checkpoint)
    return Seen(at, waiting, note.since, pace, runs), note


def drains(run: dict[str, Any]) -> bool:
    return bool(run.get("Arguments", {}).get("--drain") == "true")


def note_warned(note: Waiting, s3: Any, checkpoint: str, now: datetime) -> None:
    """The message that the budget makes files late went out just now."""
    _write(replace(note, warned_at=now.timestamp()), s3, checkpoint)


def _noted(rules: Rules, now: float, listed: Sequence[dict[str, Any]], pace: Pace, s3: Any, checkpoint: str) -> Waiting:
    runs = [Run(*_times(run)) for run in listed if run["JobRunState"] not in FAILED]
    newest = max((run.began_at for run in runs), default=0.0)
    note = Waiting.of(_read(s3, checkpoint, NOTE))
    if newest < note.since <= now:
        return note
    note = replace(note, since=max(rules.first_seen(now, runs, pace), newest + 1))
    _write(note, s3, checkpoint)
    return note


def _times(run: dict[str, Any]) -> tuple[float, float | None]:
    ended = None if run["JobRunState"] in AT_WORK else run.get("CompletedOn") or run["StartedOn"]
    return run["StartedOn"].timestamp(), ended and ended.timestamp()


def _read(s3: Any, checkpoint: str, name: str) -> bytes | None:
    try:
        content: bytes = s3.get_object(**place_of(checkpoint, name))["Body"].read()
    except s3.exceptions.NoSuchKey:
        return None
    return content


def _write(note: Waiting, s3: Any, checkpoint: str) -> None:
    s3.put_object(**place_of(checkpoint, NOTE), Body=note.text())
