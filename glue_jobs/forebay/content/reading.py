"""Pieces of files become rows: fetched many at once, unpacked, split, and handed on as Arrow batches.

In: pieces, and `get`, which knows where bytes come from. Out: batches of documents, refused records and one end for
each piece, as `rows` describes them. A bad file or record is a row; what is raised is a fault of ours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa

from forebay.content.encoding import Text, decoded
from forebay.content.end import PieceEnd, hash_of
from forebay.content.fetch import Get, Metadata
from forebay.content.limits import Limits
from forebay.content.outcome import FileReason, TooMany, Unread, kept_text
from forebay.content.piece import Piece, cut
from forebay.content.ranges import Fetched, take
from forebay.content.rows import document_batches, end_batch, joined, refused_batches, with_metadata
from forebay.content.split import split, split_json_lines
from forebay.content.unpack import expand, is_named_archive
from forebay.content.vetting import Split
from forebay.content.window import fetch_all
from forebay.declaration.form import FOUND, Form
from forebay.landed_file import LandedFile

__all__ = ["read_files", "read_pieces"]

HEAD_CHARACTERS = 1024

NO_ROOM = Unread("unreadable", "too-large")
"""There was no memory to fetch it, beside others or at all."""


def read_files(files: Iterable[LandedFile], get: Get, limits: Limits) -> Iterator[pa.RecordBatch]:
    """The rows of the files. Reading again gives the same rows, perhaps in another order."""
    return read_pieces(cut(list(files), limits), get, limits)


def read_pieces(
    pieces: Iterable[Piece],
    get: Get,
    limits: Limits,
    metadata: Metadata | None = None,
    form: Form = FOUND,
) -> Iterator[pa.RecordBatch]:
    """The rows of pieces that were dealt to this task; with what `get` writes into `metadata`, if that is given. `form` says
    how the records lie in the files."""
    return joined(_rows(pieces, get, limits, metadata, form))


def _rows(
    pieces: Iterable[Piece], get: Get, limits: Limits, metadata: Metadata | None, form: Form
) -> Iterator[pa.RecordBatch]:
    fetch = partial(_take, get=get, limits=limits)
    crowded: list[Piece] = []
    for piece, fetched in fetch_all(pieces, fetch, limits):
        yield from _with_metadata(_rows_of_piece(piece, fetched, limits, form, crowded), piece, metadata)
    for piece in crowded:  # what found no room beside others is read again, alone
        yield from _with_metadata(_rows_of_piece(piece, fetch(piece), limits, form, None), piece, metadata)


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
    content = raw if fetched.lines else expand(raw, limits)
    if isinstance(content, Unread):
        yield end_batch(_end_unread(piece, fetched, content))
        return
    text = Text(content) if fetched.lines and fetched.offset else decoded(content)
    if content is not raw:
        limits = limits.of_archive(fetched.bytes_read)
    try:
        records = (split_json_lines if fetched.lines else split)(text.utf8, limits, form.inside)
    except TooMany as too_many:
        head = kept_text(content[:HEAD_CHARACTERS], HEAD_CHARACTERS)
        yield end_batch(_end_unread(piece, fetched, Unread("unreadable", too_many.reason, too_many.detail, head)))
        return
    if records is None:
        named_falsely = is_named_archive(piece.file.key) and content is raw
        yield end_batch(_end_unread(piece, fetched, _not_json(content, named_falsely)))
        return
    yield from document_batches(piece.number, records, text, fetched.offset)
    yield from refused_batches(piece.number, records.refused, text, fetched.offset, limits.raw_bytes)
    yield end_batch(_end(piece, fetched, len(content), records, hash_of(raw)))


def _end(piece: Piece, fetched: Fetched, expanded_bytes: int, records: Split, content_hash: str) -> PieceEnd:
    documents, refused = len(records.starts), len(records.refused)
    return PieceEnd(
        piece=piece.number,
        outcome="loaded" if documents or refused else "empty",
        documents=documents,
        refused=refused,
        lines=records.line_count,
        bytes_read=fetched.bytes_read,
        expanded_bytes=expanded_bytes,
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
        "unreadable", "too-large", f"it takes more memory than the {limits.task_memory_bytes} bytes of a task"
    )


def _take(piece: Piece, get: Get, limits: Limits) -> Fetched:
    try:
        return take(piece, get, limits)
    except MemoryError:
        return Fetched(NO_ROOM)


def _not_json(content: bytes, named_falsely: bool) -> Unread:
    """What calls itself an archive and is neither that nor text is taken for a broken one."""
    head = kept_text(content[:HEAD_CHARACTERS], HEAD_CHARACTERS)
    reason: FileReason = "corrupt-archive" if named_falsely else "not-json"
    return Unread("unreadable", reason, f"it begins as {_looks_like(content)}", head)


_SIGNATURES = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"PK\x03\x04", "a zip archive, which is not read"),
    (b"\xfd7zXZ\0", "an xz archive, which is not read"),
    (b"\x04\x22\x4d\x18", "an lz4 archive, which is not read"),
    (b"\x82SNAPPY\0", "a snappy-java stream, which is not read (the framing format is)"),
    (b"PAR1", "a Parquet file"),
    (b"Obj\x01", "an Avro file"),
    (b"ORC", "an ORC file"),
    (b"%PDF", "a PDF file"),
    (b"<", "HTML or XML"),
)


def _looks_like(content: bytes) -> str:
    head = content[:256].lstrip()
    for signature, name in _SIGNATURES:
        if head.startswith(signature):
            return name
    if b"\0" in head:
        return "binary data, or as UTF-16 without a byte order mark"
    return "text that is no JSON"
