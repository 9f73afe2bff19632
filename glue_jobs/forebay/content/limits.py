"""The limits of the reader: how much it reads at once, and the largest file and record that it accepts; each number is defined
once.

In: numbers from a declaration or from Spark options. Out: one frozen `Limits`. A number out of range is
`InvalidConfiguration`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from forebay.errors import InvalidConfiguration, Problem
from forebay.nesting import DEEPEST

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

ARROW_STRINGS = (1 << 31) - 1
"""One Arrow string column addresses its bytes with 32 bits, so no text may be longer."""


RECORDS_OF_ANY_ARCHIVE = 1_000_000
"""An archive with fewer records than this is never a bomb, however small it is."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """All whole numbers; the docstring of each says what reaching it does."""

    files_in_flight: int = 32
    """Requests that one task keeps going at once. Thirty in flight hide 30 ms of latency behind one."""
    bytes_in_flight: int = 128 * MIB
    """Announced bytes that one task holds or awaits at once; a single larger file is still fetched, alone."""
    piece_bytes: int = 128 * MIB
    """A plain file larger than this is read by several tasks, in ranges."""
    max_file_bytes: int = GIB
    """A file that must be read whole and is larger is refused: too-large."""
    max_expanded_bytes: int = GIB
    """An archive that expands to more is refused: expansion-bomb."""
    max_expansion: int = 200
    """A file that expands to more than this many times its size is refused. JSON shrinks 10 to 30 times, a bomb a thousand."""
    max_members: int = 50_000
    """A zip archive with more members is refused: too-many-members. Each member costs as much as hundreds of records."""
    max_records: int = 10_000_000
    """A piece with more records is refused as a whole: too-many-records. An archive may hold RECORDS_OF_ANY_ARCHIVE, and
    one for each of its own bytes."""
    max_refused: int = 100_000
    """A piece in which more records are refused is refused: too-many-refused. Each of them is a row of the quarantine."""
    max_record_bytes: int = 16 * MIB
    """A longer record is refused: record-too-large. Spark's own parser gives up on a string of 20 million
    characters."""
    max_depth: int = DEEPEST
    """A record nested deeper is refused: too-deep. Everything behind the reader takes DEEPEST, and no more."""
    task_memory_bytes: int = 4 * GIB
    """Memory that one task may take while it reads (Linux only). A file for which that is not enough is refused: too-large."""
    raw_bytes: int = 64 * KIB
    """How much of a refused record's text is kept."""
    attempts: int = 8
    """How often a request is made before its file is given up as unavailable."""

    def __post_init__(self) -> None:
        wrong = [
            Problem(f.name, f"{getattr(self, f.name)} is below 1") for f in fields(self) if getattr(self, f.name) < 1
        ]
        wrong += [
            Problem(name, f"{getattr(self, name)} is above {ARROW_STRINGS}", "one Arrow column cannot hold more")
            for name in ("max_file_bytes", "max_expanded_bytes", "piece_bytes")
            if getattr(self, name) > ARROW_STRINGS
        ]
        if self.max_depth > DEEPEST:
            wrong.append(
                Problem("max_depth", f"{self.max_depth} is above {DEEPEST}", "no table accepts a deeper record")
            )
        if wrong:
            raise InvalidConfiguration(wrong)

    def of_archive(self, archive_bytes: int) -> Limits:
        """The limits for an archive of this size."""
        return replace(self, max_records=min(self.max_records, RECORDS_OF_ANY_ARCHIVE + archive_bytes))
