"""How the reading of a piece ended, and what that means for its file.

In: one end per piece. Out: one `FileEnd` per file. A file is loaded whole or not at all. If one of its pieces was not read,
`FileEnd.lands` is false, and the rows of its other pieces must not land.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from forebay.content.outcome import ReadOutcome
from forebay.content.piece import Piece
from forebay.errors import Halt
from forebay.landed_file import LandedFile
from forebay.plain import plain

_COLUMNS_OF_THEIR_OWN = ("piece", "reason", "detail")


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceEnd:
    """The result of one piece. `head` is the beginning of a file that was refused; `requests` counts GETs. `content_hash`
    is of the bytes that belong to the piece, unchanged."""

    piece: int
    outcome: ReadOutcome
    reason: str | None = None
    detail: str | None = None
    documents: int = 0
    refused: int = 0
    lines: int = 0
    bytes_read: int = 0
    expanded_bytes: int = 0
    requests: int = 0
    head: str = ""
    content_hash: str = ""

    def reads_like(self, other: PieceEnd) -> bool:
        """Whether the records are the same."""
        mine, theirs = ((one.outcome, one.content_hash, one.documents, one.refused, one.lines) for one in (self, other))
        return mine == theirs

    def value(self) -> str:
        """The fields that have no column of their own."""
        return json.dumps({k: v for k, v in plain(self).items() if k not in _COLUMNS_OF_THEIR_OWN})

    @classmethod
    def from_row(cls, piece: int, value: str, problem: str | None, detail: str | None) -> PieceEnd:
        return cls(piece=piece, reason=problem, detail=detail, **json.loads(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEnd:
    """The result of one file; `lines_before` has the number of lines before each of its pieces. Files that land with the
    same `content_hash` hold the same bytes."""

    file: LandedFile
    outcome: ReadOutcome
    reason: str | None
    detail: str | None
    documents: int
    refused: int
    bytes_read: int
    expanded_bytes: int
    requests: int
    head: str
    lines_before: dict[int, int] = field(default_factory=dict)
    content_hash: str = ""

    @property
    def lands(self) -> bool:
        """Whether the rows of its pieces count. If not, the reader leaves them out."""
        return self.outcome in ("loaded", "empty", "forgotten", "deleted")


def file_ends(pieces: Sequence[Piece], ends: Iterable[PieceEnd]) -> list[FileEnd]:
    """One end per file, in the order of their first pieces. A piece without its end, or with two, halts: nobody could count
    its rows."""
    known = list(ends)
    by_piece = {end.piece: end for end in known}
    if len(known) != len(pieces) or by_piece.keys() != {p.number for p in pieces}:
        odd = sorted({p.number for p in pieces} ^ by_piece.keys()) or "some of them twice"
        raise Halt(f"{len(pieces)} pieces were read, but {len(known)} ends came back; look at pieces {odd}")
    of_file: dict[LandedFile, list[PieceEnd]] = {}
    for piece in sorted(pieces, key=lambda p: p.number):
        of_file.setdefault(piece.file, []).append(by_piece[piece.number])
    return [_file_end(file, some) for file, some in of_file.items()]


def _file_end(file: LandedFile, ends: list[PieceEnd]) -> FileEnd:
    worst = next((e for e in ends if e.outcome not in ("loaded", "empty")), None)
    chosen = worst or next((e for e in ends if e.outcome == "loaded"), ends[0])
    lines_before, lines = {}, 0
    for end in ends:
        lines_before[end.piece] = lines
        lines += end.lines
    return FileEnd(
        file=file,
        outcome=chosen.outcome,
        reason=chosen.reason,
        detail=chosen.detail,
        documents=0 if worst else sum(e.documents for e in ends),
        refused=0 if worst else sum(e.refused for e in ends),
        bytes_read=sum(e.bytes_read for e in ends),
        expanded_bytes=sum(e.expanded_bytes for e in ends),
        requests=sum(e.requests for e in ends),
        head=chosen.head,
        lines_before=lines_before,
        content_hash="" if worst else _hash_of([end.content_hash for end in ends]),
    )


def unread_end(
    file: LandedFile, outcome: ReadOutcome, reason: str | None = None, detail: str | None = None, content_hash: str = ""
) -> FileEnd:
    """The end of a file that is not read. A `forgotten` file and a deletion land without a record, so the
    earlier rows are removed."""
    nothing: dict[str, Any] = dict.fromkeys(("documents", "refused", "bytes_read", "expanded_bytes", "requests"), 0)
    facts: dict[str, Any] = {"outcome": outcome, "reason": reason, "detail": detail, "content_hash": content_hash}
    return FileEnd(file=file, head="", **facts, **nothing)


def hash_of(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


def _hash_of(pieces: Sequence[str]) -> str:
    """Equal bytes are cut into equal pieces, as long as `piece_bytes` stays what it is. No task has all of a large file."""
    return pieces[0] if len(pieces) == 1 else hash_of("".join(pieces).encode())
