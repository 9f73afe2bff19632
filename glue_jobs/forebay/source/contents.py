"""The contents mode: the files of a batch become rows of a declared schema, where the tasks run.

In: the files of one task, the schema, and the options for everything else. Out: Arrow batches of that schema. Each file is
read whole, in one request, pinned to the version that was announced; so a batch that runs again has the same rows. The option
`mode` decides about a record that does not fit, as with Spark's own reader. Where only a number is rounded, the corrupt-record
column keeps the record's text. A file that cannot be read stops the query, unless an option or the schema provides a place for
it:

* gone: `ignoreFileDeletion`. Overwritten since: passed over, since its successor has a notification of its own.
* unreadable (a broken archive, not JSON): a row with the corrupt-record column, which says which file, why, and how it
  begins; passed over with `mode` `dropmalformed`
* refused by S3, or out of reach: always stops the query. Nothing has been deleted; the batch runs again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as T

from forebay.content.end import PieceEnd
from forebay.content.fetch import Get
from forebay.content.limits import ARROW_STRINGS, Limits
from forebay.content.piece import cut, deal
from forebay.content.reading import read_pieces
from forebay.declaration.form import Form, Forms
from forebay.errors import Halt, InvalidConfiguration, Quarantined
from forebay.events import Emit
from forebay.landed_file import LandedFile
from forebay.source.columns import columns_of, refuse_types
from forebay.source.events import ContentsRead, FilePassedOver
from forebay.source.manifest import AnnouncedFile
from forebay.source.options import SourceOptions

if TYPE_CHECKING:
    from pyarrow import RecordBatch

JSON = Forms(forms=(Form(format="json"),))
LIMITS = Limits(piece_bytes=ARROW_STRINGS)
"""Whole files: half a file cannot be taken back once its rows are with Spark."""


@dataclass(frozen=True)
class Layout:
    """The columns that the user declared; `corrupt` is the place of the one for what does not fit, if there is one."""

    schema: T.StructType
    parsed: T.StructType
    corrupt: int | None

    @classmethod
    def of(cls, schema: T.StructType, options: SourceOptions) -> Layout:
        """Raises `InvalidConfiguration` for a schema that JSON cannot be read into."""
        name = options.column_name_of_corrupt_record
        corrupt = schema.names.index(name) if name in schema.names else None
        if corrupt is not None and not isinstance(schema[corrupt].dataType, T.StringType):
            raise InvalidConfiguration.one(
                f"schema: {name}", "holds the text of what does not fit", f"declare it `{name} string`"
            )
        parsed = T.StructType([f for f in schema.fields if f.name != name])
        refuse_types(parsed)
        return cls(schema, parsed, corrupt)


def dealt(files: Sequence[AnnouncedFile], tasks: int) -> list[list[AnnouncedFile]]:
    """The files, dealt to at most `tasks` tasks of about equal weight."""
    hands = deal(cut([row.file for row in files], LIMITS), tasks)
    return [[files[piece.number] for piece in hand] for hand in hands]


def rows_of(
    files: Sequence[LandedFile], layout: Layout, options: SourceOptions, get: Get, emit: Emit
) -> Iterator[RecordBatch]:
    """The rows of the files."""
    total = ContentsRead(files=len(files), records=0, misfits=0, bytes=0)
    pieces = cut(files, LIMITS)
    for batch in read_pieces(pieces, get, LIMITS, forms=JSON):
        found = _Found.of(batch)
        for end in found.ends:
            total = replace(total, bytes=total.bytes + end.bytes_read)
            if end.outcome not in ("loaded", "empty"):
                found.texts += _unread(pieces[end.piece].file, end, layout, options, emit)
                found.documents += [""] * (len(found.texts) - len(found.documents))
        if found.texts:
            rows, misfits = _rows(found, layout, options)
            total = replace(total, records=total.records + rows.num_rows, misfits=total.misfits + misfits)
            yield rows
    emit(total)


@dataclass
class _Found:
    """One batch of the reader: the original texts, and the texts to parse; a refused record has only the former."""

    texts: list[str]
    documents: list[str]
    ends: list[PieceEnd]

    @classmethod
    def of(cls, batch: RecordBatch) -> _Found:
        texts, documents, ends = [], [], []
        columns = (batch.column(name).to_pylist() for name in ("piece", "line", "value", "problem", "detail"))
        for piece, line, value, problem, detail in zip(*columns, strict=True):
            if line is None:
                ends.append(PieceEnd.from_row(piece, value, problem, detail))
            else:
                texts.append(value)
                documents.append("" if problem else value)
        return cls(texts, documents, ends)


def _rows(found: _Found, layout: Layout, options: SourceOptions) -> tuple[RecordBatch, int]:
    import pyarrow as pa

    columns = columns_of(found.documents, layout.parsed, options.time_zone)
    if columns.misfits and options.mode == "failfast":
        text = found.texts[min(columns.misfits)]
        raise Quarantined("does-not-fit", f"mode is failfast, and this record does not fit the schema: {text[:1000]}")
    arrays = list(columns.arrays)
    if layout.corrupt is not None:
        odd = columns.misfits | columns.inexact
        corrupt = [text if place in odd else None for place, text in enumerate(found.texts)]
        arrays.insert(layout.corrupt, pa.array(corrupt, pa.string()))
    if not arrays:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(found.texts), pa.struct([]))), len(columns.misfits)
    rows = pa.RecordBatch.from_arrays(arrays, names=layout.schema.names)
    if columns.misfits and options.mode == "dropmalformed":
        rows = rows.filter(pa.array([place not in columns.misfits for place in range(len(found.texts))]))
    return rows, len(columns.misfits)


def _unread(file: LandedFile, end: PieceEnd, layout: Layout, options: SourceOptions, emit: Emit) -> list[str]:
    """The text of the row that stands for a file which was not read; none where it is passed over."""
    why = f"{file.uri} ({end.reason}): {end.detail}"
    if end.outcome == "missing" and not options.ignore_file_deletion:
        raise Halt(f"{why}; the file was deleted. With the option ignoreFileDeletion, the query continues without it")
    if end.outcome == "denied":
        raise InvalidConfiguration.one(
            file.uri, f"may not be read: {end.detail}", "allow s3:GetObject, and kms:Decrypt"
        )
    if end.outcome == "unavailable":
        raise Halt(f"{why}; nothing was deleted, start again")
    if end.outcome == "unreadable" and options.mode != "dropmalformed":
        if layout.corrupt is None or options.mode == "failfast":
            name = options.column_name_of_corrupt_record
            raise Quarantined(end.reason or "", f"{why}. With a column {name} string in the schema the query continues")
        return [f"{why}: {end.head}"]
    emit(FilePassedOver(uri=file.uri, outcome=end.outcome, reason=end.reason, detail=end.detail))
    return []


def landed(rows: Any) -> list[LandedFile]:
    """The files in the Arrow rows that a partition carries."""
    names = ("bucket", "key", "size", "etag", "version_id", "sequencer")
    return [LandedFile(*values) for values in zip(*(rows.column(name).to_pylist() for name in names), strict=True)]
