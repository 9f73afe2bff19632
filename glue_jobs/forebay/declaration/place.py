"""The place of files: a prefix of keys, in one bucket or in any. If several places match, the most specific one decides.

Pure, and light enough for tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """An empty prefix or bucket fits every object."""

    prefix: str = ""
    bucket: str = ""

    def holds(self, bucket: str, key: str) -> bool:
        """Whether the place contains a file. A local file has no bucket, so only its key decides."""
        return key.startswith(self.prefix) and (not self.bucket or bucket in (self.bucket, ""))


def deciding(places: Sequence[Place], bucket: str, key: str) -> int | None:
    """The number of the place that applies to this file; None if no place contains it."""
    return next((n for n in most_specific_first(places) if places[n].holds(bucket, key)), None)


def most_specific_first(places: Sequence[Place]) -> list[int]:
    """The numbers of the places, the longest prefix first; of equal ones, the one that names its bucket."""
    return sorted(range(len(places)), key=lambda n: (-len(places[n].prefix), not places[n].bucket))
