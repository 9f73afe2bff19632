"""Objects as a list of a place names them: those that are there, and old versions that a bucket keeps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Listed:
    name: str
    bytes: int
    modified: datetime


@dataclass(frozen=True, slots=True)
class OldVersion:
    """A version of an object that was deleted or replaced: a versioned bucket keeps it. `id` is S3's."""

    name: str
    id: str
