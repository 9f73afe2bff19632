"""Outcomes of an event besides a file: it is ignored for a countable reason, or it is not understood.

`Ignored` is an ordinary value. `NotUnderstood` never leaves this room: `reading` turns it into a sentence of
`Reading.refused`, and the message is kept.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from forebay.landed_file import LandedFile

REASONS = {
    "test-event": "S3 says that a notification was set up",
    "delete": "an object or a version was removed, or hidden by a delete marker",
    "lifecycle": "a lifecycle rule removed an object or moved it to another storage class",
    "tiering": "Intelligent-Tiering moved an object to an archive tier",
    "restore": "an object was restored from an archive; its contents are not new",
    "tagging": "tags were set or removed",
    "acl": "an access control list was changed",
    "annotation": "an annotation was set or removed",
    "replication": "replication reports on itself",
    "lost-object": "S3 lost an object of the reduced redundancy class",
    "folder-marker": "an empty object that represents a folder",
    "success-marker": "a framework marks a folder as complete",
    "commit-marker": "a framework's own record of a commit",
    "temporary": "an object that its writer will move or remove",
    "hidden": "a dot-file, or the log of a table or a sink",
    "bucket-not-allowed": "the bucket is not one of the declared ones",
    "filtered": "the key does not fit the declared prefix, suffix or glob",
    "empty-records": "a list of events with none in it",
}
"""Every reason for which an event is ignored, and what it means."""


@dataclass(frozen=True, slots=True)
class Ignored:
    """An event that was understood and announces no file to load: the reason is one of `REASONS`, `what` names the object,
    or the event if it has none. `deleted` is set for a deletion by a user: the file that stands for it, or the reason why that
    is unknown."""

    reason: str
    what: str
    deleted: LandedFile | str | None = field(default=None, compare=False)


class NotUnderstood(ValueError):
    """The meaning of an event is not certain; the text says why."""


_LONGEST_SHOWN = 80


def shown(value: Any) -> str:
    """A JSON value as a reason may quote it: short, printable, and safe for any depth and any character."""
    if isinstance(value, str):
        rest = f"... ({len(value)} characters)" if len(value) > _LONGEST_SHOWN else ""
        return ascii(value[:_LONGEST_SHOWN]) + rest
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    return json.dumps(value)[:_LONGEST_SHOWN]
