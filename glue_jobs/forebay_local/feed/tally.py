"""The expected result of a feed's ingest. This is the one home of each number's meaning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from forebay.landed_file import LandedFile


@dataclass(frozen=True)
class Tally:
    """An account of records. A record is a line that is not empty, and is exactly one of:

    * `clean` of a game: a JSON object that names one of the games, every field of its type;
    * `mistyped` of a game: a JSON object that names one of the games, one other field of the wrong type;
    * `unknown`: a JSON object of a game that is not among the games;
    * `gameless`: a JSON object whose `game` is missing or null;
    * `unreadable`: not a JSON object (cut off, not JSON, a number, null, a list, invalid UTF-8).

    `late` are those of the clean that happened an hour or more before their file landed.
    """

    clean: Mapping[str, int] = field(default_factory=dict)
    mistyped: Mapping[str, int] = field(default_factory=dict)
    unknown: int = 0
    gameless: int = 0
    unreadable: int = 0
    late: int = 0

    @property
    def records(self) -> int:
        """All lines that are not empty."""
        return sum(self.clean.values()) + self.dirty + self.unknown + self.gameless

    @property
    def dirty(self) -> int:
        """Records with something wrong in themselves."""
        return self.unreadable + sum(self.mistyped.values())

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            _sum(self.clean, other.clean),
            _sum(self.mistyped, other.mistyped),
            self.unknown + other.unknown,
            self.gameless + other.gameless,
            self.unreadable + other.unreadable,
            self.late + other.late,
        )


@dataclass(frozen=True)
class Dropped:
    """The landed files.

    * `files`: puts;
    * `duplicates`: those puts that made no new version, because a bucket without versioning tells contents apart by
      their etag; in a versioned bucket each put is a version, so none is a duplicate;
    * `versions`: the others, each once, in the order of their landing; as many as a ledger must have rows;
    * `put_bytes` of all puts;
    * `different`: how many different contents of keys there are among the versions; loading each once is the promise;
    * `tally`: the records of those.
    """

    files: int = 0
    versions: tuple[LandedFile, ...] = ()
    put_bytes: int = 0
    different: int = 0
    tally: Tally = field(default_factory=Tally)

    @property
    def duplicates(self) -> int:
        return self.files - len(self.versions)


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted((Counter(one) + Counter(other)).items()))
