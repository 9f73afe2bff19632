"""Pieces of files become rows: fetched many at once, unpacked, split, and handed on as Arrow batches.

In: pieces, and `get`, which knows where bytes come from. Out: batches of documents, refused records and one end for each
piece, as `rows` describes them. A bad file or record is a row; an exception is our own fault.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby, starmap

import numpy as np
import pyarrow as pa

from forebay.content.encoding import Several
from forebay.content.end import PieceEnd, hash_of
from forebay.content.fetch import Get, Metadata
from forebay.content.formats.part import Part
from forebay.content.formats.parts import parts_of
from forebay.content.limits import Limits
from forebay.content.members import Content, contents_of
from forebay.content.originals import without_originals
from forebay.content.outcome import NotTaken, TooMany, Unread
from forebay.content.piece import Piece
from forebay.content.rows import Member, document_batches, end_batch, joined, of_members, refused_batches, with_metadata
from forebay.content.signature import looks_like
from forebay.content.splitting.ranges import Fetched, take
from forebay.content.splitting.split import may_be_joined, split_json_lines
from forebay.content.treated import treated_rows
from forebay.content.vetting import Split
from forebay.content.window import fetch_all
from forebay.declaration.form import Form, Forms

SMALL_BYTES, JOINED_BYTES = 256 << 10, 4 << 20
"""Files of up to this many bytes are split together, with this many bytes in all."""
NO_ROOM = Unread("unreadable", "too-large")
"""There was no memory to fetch it, beside others or at all."""


def read_pieces(
    pieces: Iterable[Piece],
    get: Get,
    limits: Limits,
    metadata: Metadata | None = None,
    forms: Forms | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of pieces that were dealt to this task, with what `get` writes into `metadata`, if that is given. Reading again
    gives the same rows, perhaps in another order. `forms` say how records are laid out in the files."""
    forms = forms or Forms()
    rows = _rows(pieces, get, limits, metadata, forms)
    return joined(map(without_originals, rows) if forms.have_a_vault else rows)


def _rows(
    pieces: Iterable[Piece], get: Get, limits: Limits, metadata: Metadata | None, forms: Forms
) -> Iterator[pa.RecordBatch]:
    fetch = partial(_take, get=get, limits=limits, forms=forms)
    crowded: list[Piece] = []
    small: list[tuple[Piece, Fetched]] = []
    small_bytes = 0

    def rows_of(piece: Piece, fetched: Fetched, crowded: list[Piece] | None = crowded) -> Iterator[pa.RecordBatch]:
        form = forms.of(piece.file.bucket, piece.file.key)
        rows = _kept(_rows_of_piece(piece, fetched, limits, form, crowded), form)
        return _with_metadata(rows, piece, metadata)

    def rows_of_small() -> Iterator[pa.RecordBatch]:
        joined = _rows_of_joined(small, limits)
        yield from chain.from_iterable(starmap(rows_of, small)) if joined is None else joined

    for piece, fetched in fetch_all(pieces, fetch, limits):
        if metadata is None and _may_be_joined(fetched, forms.of(piece.file.bucket, piece.file.key)):
            small.append((piece, fetched))
            small_bytes += fetched.bytes_read
            if small_bytes > JOINED_BYTES:
                yield from rows_of_small()
                small, small_bytes = [], 0
        else:
            yield from rows_of(piece, fetched)
    if small:
        yield from rows_of_small()
    for piece in crowded:  # what found no room beside others is read again, alone
        yield from rows_of(piece, fetch(piece), None)


def _may_be_joined(fetched: Fetched, form: Form) -> bool:
    """Whether the file is small, and seems to be lines that are its records."""
    content = fetched.content
    if isinstance(content, Unread) or fetched.lines or len(content) > SMALL_BYTES:
        return False
    if form.inside or form.exploded or form.personal or form.erased or not form.may_be_json:
        return False
    return may_be_joined(content) and looks_like(content) is None


def _rows_of_joined(files: Sequence[tuple[Piece, Fetched]], limits: Limits) -> list[pa.RecordBatch] | None:
    """The rows of files that are split as one text, which costs less. None if one of their lines is not a record, or if memory
    is not enough: none of them is handed on then, and each file is read alone."""
    contents = [fetched.content for _, fetched in files if isinstance(fetched.content, bytes)]
    try:
        lines = [content if content.endswith(b"\n") else content + b"\n" for content in contents]
        text = Several(b"".join(lines), np.cumsum([0, *map(len, lines[:-1])]))
        records = split_json_lines(text.utf8, limits)
        if not records.tight or records.refused:
            return None
        return list(_rows_of_several(files, contents, text, records))
    except (MemoryError, TooMany):
        return None


def _rows_of_several(
    files: Sequence[tuple[Piece, Fetched]], contents: Sequence[bytes], text: Several, records: Split
) -> Iterator[pa.RecordBatch]:
    """White space follows a record, but not the last one of its file, as when the file is split alone."""
    of, numbers = text.of(records.starts), np.array([piece.number for piece, _ in files], np.int32)
    ends = np.where(np.diff(of, append=-1) == 0, np.append(records.starts[1:], 0), records.ends)
    line_counts = [content.count(b"\n") + (not content.endswith(b"\n")) for content in contents]
    lines = records.lines - np.cumsum([0, *line_counts[:-1]])[of]
    yield from document_batches(numbers[of], replace(records, ends=ends, lines=lines, tight=False), text)
    documents = np.bincount(of, minlength=len(files)).tolist()
    yield end_batch(
        *(
            _end(piece, fetched, _Taken(found, lines=lines, expanded_bytes=len(content)), hash_of(content))
            for (piece, fetched), content, found, lines in zip(files, contents, documents, line_counts, strict=True)
        )
    )


def _kept(rows: Iterator[pa.RecordBatch], form: Form) -> Iterator[pa.RecordBatch]:
    return treated_rows(rows, form) if form.personal or form.erased else rows


def _with_metadata(rows: Iterator[pa.RecordBatch], piece: Piece, metadata: Metadata | None) -> Iterator[pa.RecordBatch]:
    if metadata is None:
        yield from rows
    else:
        for batch in rows:
            yield with_metadata(batch, json.dumps(metadata.get(piece.file, {})))


def _rows_of_piece(
    piece: Piece, fetched: Fetched, limits: Limits, form: Form, crowded: list[Piece] | None
) -> Iterator[pa.RecordBatch]:
    """Where memory is not enough, the piece is left for later, if nothing of it was handed on. Else its end says so; that
    comes last, so what came before it does not count."""
    began = False
    try:
        for batch in _rows_of_content(piece, fetched, limits, form):
            began = True
            yield batch
    except MemoryError:
        if crowded is None or began:
            yield end_batch(_end_unread(piece, fetched, _too_large(limits)))
        else:
            crowded.append(piece)


def _rows_of_content(piece: Piece, fetched: Fetched, limits: Limits, form: Form) -> Iterator[pa.RecordBatch]:
    if fetched.content == NO_ROOM:
        raise MemoryError
    raw = fetched.content
    if isinstance(raw, Unread):
        yield end_batch(_end_unread(piece, fetched, raw))
        return
    taken = _Taken()
    try:
        for is_packed, contents in groupby(_contents(piece, fetched, raw, limits), lambda content: content.is_member):
            of_contents = _rows_of_contents(piece, contents, fetched, limits, form, taken)
            yield from of_members(of_contents) if is_packed else (batch for batch, _ in of_contents)
    except NotTaken as refusal:
        yield end_batch(_end_unread(piece, fetched, refusal.why))
        return
    yield end_batch(_end(piece, fetched, taken, hash_of(raw)))


def _rows_of_contents(
    piece: Piece, contents: Iterable[Content], fetched: Fetched, limits: Limits, form: Form, taken: _Taken
) -> Iterator[tuple[pa.RecordBatch, Member]]:
    """The rows of contents, with the archive member to which they belong."""
    for content in contents:
        member = Member(content.key, taken.base)
        of_this = limits.of_archive(fetched.bytes_read) if content.was_packed else limits
        for part in parts_of(content, form, of_this):
            taken.add(part, of_this)
            for batch in document_batches(piece.number, part.records, part.text):
                yield batch, member
            for batch in refused_batches(piece.number, part.records.refused, part.text, limits.raw_bytes):
                yield batch, member
        taken.close(content)


@dataclass(slots=True)
class _Taken:
    """The records of the parts so far. Places of the next member of an archive are counted from `base` on."""

    documents: int = 0
    refused: int = 0
    lines: int = 0
    expanded_bytes: int = 0
    base: int = 0
    rows: int = 0

    def close(self, content: Content) -> None:
        """Ends a content. A row of Parquet may take less than a byte."""
        self.expanded_bytes += len(content.data)
        self.base += max(len(content.data), self.documents + self.refused - self.rows)
        self.rows = self.documents + self.refused

    def add(self, part: Part, limits: Limits) -> None:
        self.documents += len(part.records.starts)
        self.refused += len(part.records.refused)
        self.lines += part.records.line_count
        if self.documents > limits.max_records:
            raise NotTaken("too-many-records", f"{limits.max_records} is the limit")
        if self.refused > limits.max_refused:
            raise NotTaken("too-many-refused", f"{limits.max_refused} is the limit")


def _contents(piece: Piece, fetched: Fetched, raw: bytes, limits: Limits) -> Iterator[Content]:
    if fetched.lines:
        yield Content(piece.file.key, raw, cut=True, offset=fetched.offset)
    else:
        yield from contents_of(piece.file.key, raw, limits)


def _end(piece: Piece, fetched: Fetched, taken: _Taken, content_hash: str) -> PieceEnd:
    return PieceEnd(
        piece=piece.number,
        outcome="loaded" if taken.documents or taken.refused else "empty",
        documents=taken.documents,
        refused=taken.refused,
        lines=taken.lines,
        bytes_read=fetched.bytes_read,
        expanded_bytes=taken.expanded_bytes,
        requests=fetched.requests,
        content_hash=content_hash,
    )


def _end_unread(piece: Piece, fetched: Fetched, why: Unread) -> PieceEnd:
    return PieceEnd(
        piece=piece.number,
        outcome=why.outcome,
        reason=why.reason,
        detail=why.detail,
        bytes_read=fetched.bytes_read,
        requests=fetched.requests,
        head=why.head,
    )


def _too_large(limits: Limits) -> Unread:
    return Unread(
        "unreadable", "too-large", f"it needs more memory than the {limits.task_memory_bytes} bytes of a task"
    )


def _take(piece: Piece, get: Get, limits: Limits, forms: Forms) -> Fetched:
    try:
        return take(piece, get, limits, forms.of(piece.file.bucket, piece.file.key))
    except MemoryError:
        return Fetched(NO_ROOM)
