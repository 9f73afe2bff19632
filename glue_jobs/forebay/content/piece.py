"""A piece is what one task reads of one file: nearly always all of it, or a range of bytes of a large plain one.

In: the files of a batch, with the sizes from their notifications. Out: pieces, and their distribution over tasks with about
equally many bytes each. Pure: the same files give the same pieces, and so the same numbers.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from forebay.content.limits import Limits
from forebay.content.unpack import is_named_archive
from forebay.landed_file import LandedFile

UNKNOWN_SIZE = 1 << 20
"""The assumed size of a file whose notification gives none."""

REQUEST_WEIGHT = 256 << 10
"""A request costs about as much as reading this many bytes, so a thousand tiny files are not light."""

MOST_PIECES = 2_000
"""A file that would be more pieces is not cut. The size is what a message said, and may be absurd; a file that really is so
large (250 GB by default) is refused as too-large."""

ARCHIVE_WEIGHT = 6
"""A byte of an archive is several bytes of JSON."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes `start` up to `stop` of a file; `stop` None means all of it. `number` identifies the piece in every row."""

    number: int
    file: LandedFile
    start: int = 0
    stop: int | None = None

    @property
    def whole(self) -> bool:
        return self.stop is None

    @property
    def bytes_awaited(self) -> int:
        if self.stop is not None:
            return self.stop - self.start
        return UNKNOWN_SIZE if self.file.size is None else self.file.size

    @property
    def weight(self) -> int:
        return REQUEST_WEIGHT + self.bytes_awaited * (ARCHIVE_WEIGHT if is_named_archive(self.file.key) else 1)


def cut(files: Sequence[LandedFile], limits: Limits) -> list[Piece]:
    """The pieces of the files, numbered in their order; a file that is not cut is one piece."""
    pieces: list[Piece] = []
    for file in files:
        for start, stop in _ranges(file, limits.piece_bytes):
            pieces.append(Piece(len(pieces), file, start, stop))
    return pieces


def deal(pieces: Iterable[Piece], tasks: int) -> list[list[Piece]]:
    """Hands pieces to at most `tasks` tasks, the heaviest first and each to the task with least (LPT: never worse than
    4/3 of the best)."""
    hands: list[list[Piece]] = [[] for _ in range(max(1, tasks))]
    lightest = [(0, n) for n in range(len(hands))]
    for piece in sorted(pieces, key=lambda p: (-p.weight, p.number)):
        weight, n = lightest[0]
        hands[n].append(piece)
        heapq.heapreplace(lightest, (weight + piece.weight, n))
    return [hand for hand in hands if hand]


def _ranges(file: LandedFile, piece_bytes: int) -> list[tuple[int, int | None]]:
    """Ranges of about equal length. Only what is pinned to one version may be read in several requests."""
    pinned = file.version_id or file.etag
    if file.size is None or file.size <= piece_bytes or is_named_archive(file.key) or not pinned:
        return [(0, None)]
    count = -(-file.size // piece_bytes)
    if count > MOST_PIECES:
        return [(0, None)]
    borders = [file.size * n // count for n in range(count + 1)]
    return list(pairwise(borders))
