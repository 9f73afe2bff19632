"""Samples that are more than plain text are read in a separate process, under the memory ceiling of a job's task.

In: pieces, each a whole file, and their contents. Out: the rows of `content`. A file of 4 KB may expand to gigabytes, and may
kill the process that reads it. Then the others are read without it, and its end is `poison`. The process costs half a second,
so plain text is read without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TYPE_CHECKING

from forebay.content.ceiling import ceiling
from forebay.content.end import PieceEnd
from forebay.content.outcome import POISON, Unread
from forebay.content.reading import read_pieces
from forebay.content.rows import end_batch

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from forebay.content.limits import Limits
    from forebay.content.piece import Piece
    from forebay.declaration.form import Forms
    from forebay.landed_file import LandedFile

Contents = Mapping["LandedFile", bytes]
Read = Callable[[Sequence["Piece"], Contents, "Limits", "Forms | None", int], "list[RecordBatch]"]


def read_sheltered(
    pieces: Sequence[Piece],
    contents: Contents,
    limits: Limits,
    forms: Forms | None,
    most_bytes: int,
    read: Read | None = None,
) -> list[RecordBatch]:
    """The rows, or more than `most_bytes` of them; then those that would follow are not read."""
    if not pieces:
        return []
    some = {piece.file: contents[piece.file] for piece in pieces}
    try:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            return pool.submit(read or read_alone, pieces, some, limits, forms, most_bytes).result()
    except BrokenProcessPool:
        if len(pieces) == 1:
            return [_poison(pieces[0], some[pieces[0].file])]
    half = len(pieces) // 2
    parts = (pieces[:half], pieces[half:])
    return [batch for part in parts for batch in read_sheltered(part, contents, limits, forms, most_bytes, read)]


def read_alone(
    pieces: Sequence[Piece], contents: Contents, limits: Limits, forms: Forms | None, most_bytes: int
) -> list[RecordBatch]:
    """The work of the process."""

    def get(file: LandedFile, start: int = 0, stop: int | None = None) -> bytes | Unread:
        return contents[file][start:stop]

    read: list[RecordBatch] = []
    with ceiling(limits.task_memory_bytes):
        for batch in read_pieces(pieces, get, limits, forms=forms):
            read.append(batch)
            if sum(one.nbytes for one in read) > most_bytes:
                break
    return read


def _poison(piece: Piece, content: bytes) -> RecordBatch:
    detail = "reading it kills the reading process: the job isolates such a file and refuses it"
    end = PieceEnd(
        piece=piece.number, outcome="unreadable", reason=POISON, detail=detail, bytes_read=len(content), requests=1
    )
    return end_batch(end)
