"""A landed object without the records of erased subjects; its other bytes stay the same.

In: the bytes of an object, its form, and the erased subjects. Out: `Left`: the bytes that stay, or why that is unknown. JSON
lines and the rows of CSV are cut out, plain or in gzip; Parquet is rewritten with the same schema. For the other formats that
the job reads, it is only known whether all records are theirs, or none. Pure.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.parquet as pq

from forebay.content.formats.parts import parts_of
from forebay.content.limits import Limits
from forebay.content.members import Content, contents_of
from forebay.content.outcome import NotTaken
from forebay.content.rows import document_batches
from forebay.content.signature import format_of
from forebay.declaration.form import Form, Keys
from forebay.privacy.subject import subject_tokens
from forebay.upkeep.erase.rows import Erased

GZIP = b"\x1f\x8b"
TEXTS = ("csv", "tsv", "lines")
"""Formats whose records are ranges of bytes."""


@dataclass(frozen=True)
class Left:
    """`records` are those that leave. `content` is None where none does, and empty where nothing is left. `unclear`: why nobody
    can tell whose the records are, or cannot take them out alone."""

    records: int = 0
    content: bytes | None = None
    unclear: str = ""


class _Unclear(ValueError):
    """The subject of a part of the object is unknown."""


@dataclass
class _Records:
    """Each record of a file, in order: its position, as the reader counts, and whether it belongs to the erased people."""

    places: list[int] = field(default_factory=list)
    theirs: list[bool] = field(default_factory=list)


def left_of(raw: bytes, key: str, form: Form, paths: Sequence[Keys], erased: Erased) -> Left:
    """`paths` say whose a record is, in whatever surrounds it."""
    try:
        contents = [*contents_of(key, raw, Limits())]
        if len(contents) == 1 and not contents[0].is_member:
            (content,) = contents
            left = _of_lines(content, form, paths, erased) or _of_records(content, form, paths, erased)
            return replace(left, content=_packed(left.content, content, raw))
        return _of_members(contents, form, paths, erased)
    except NotTaken as refusal:
        return Left(unclear=f"cannot be read: {refusal.why.reason}, {refusal.why.detail}")
    except (_Unclear, RecursionError) as why:
        return Left(unclear=str(why))


def _packed(left: bytes | None, content: Content, raw: bytes) -> bytes | None:
    """Packs the content like the original object."""
    if not left or not content.was_packed:
        return left
    if not raw.startswith(GZIP):
        raise _Unclear("has records of other people, and is compressed, but not by gzip")
    return gzip.compress(left, mtime=0)


def _of_lines(content: Content, form: Form, paths: Sequence[Keys], erased: Erased) -> Left | None:
    """None where not each line is one record, a JSON object."""
    if form.inside or not form.may_be_json:
        return None
    try:
        records, kept = _without(content.data, paths, erased)
    except (json.JSONDecodeError, UnicodeDecodeError):
        return None
    left = b"".join(kept)
    return Left(records, left if left.strip() else b"") if records else Left()


def _without(text: bytes, paths: Sequence[Keys], erased: Erased) -> tuple[int, list[bytes]]:
    kept, records = [], 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        theirs = line.strip() and _is_theirs(_object(line), paths, erased, f"line {number}")
        records += bool(theirs)
        if not theirs:
            kept.append(line)
    return records, kept


def _object(line: bytes) -> str:
    """The text of a line that is a JSON object."""
    if not isinstance(json.loads(line), dict):
        raise json.JSONDecodeError("no object", "", 0)
    return line.decode("utf-8-sig")


def _is_theirs(text: str, paths: Sequence[Keys], erased: Erased, where: str) -> bool:
    tokens = subject_tokens(text, paths, erased.secret)
    if tokens & erased.tokens and not tokens <= erased.tokens:
        raise _Unclear(f"{where} belongs to other people, too")
    return bool(tokens & erased.tokens)


def _of_records(content: Content, form: Form, paths: Sequence[Keys], erased: Erased) -> Left:
    records = _records_of(content, form, paths, erased)
    if not any(records.theirs):
        return Left()
    if all(records.theirs):
        return Left(len(records.theirs), b"")
    kind = format_of(content.data, content.key, form)
    if kind in TEXTS:
        return Left(sum(records.theirs), _without_stretches(content.data, records))
    if kind == "parquet":
        return Left(sum(records.theirs), _without_rows(content.data, records))
    raise _Unclear("has records of other people, and its format does not allow removing single records")


def _of_members(contents: Sequence[Content], form: Form, paths: Sequence[Keys], erased: Erased) -> Left:
    """The content of an archive of several files."""
    theirs = [one for content in contents for one in _records_of(content, form, paths, erased).theirs]
    if any(theirs) and not all(theirs):
        raise _Unclear("is an archive with records of other people")
    return Left(len(theirs), b"") if any(theirs) else Left()


def _records_of(content: Content, form: Form, paths: Sequence[Keys], erased: Erased) -> _Records:
    """Reads the records as the job does. An element of an exploded array is not a record of its own here."""
    found = _Records()
    for part in parts_of(content, replace(form, exploded=()), Limits()):
        # The bracket of a torn array holds no data about a person.
        if any(one.reason != "torn-array" for one in part.records.refused):
            raise _Unclear("has records that cannot be read")
        for batch in document_batches(0, part.records, part.text):
            found.places += batch.column("byte_offset").to_pylist()
            texts = batch.column("value").to_pylist()
            found.theirs += [_is_theirs(text, paths, erased, "a record") for text in texts]
    return found


def _without_stretches(text: bytes, records: _Records) -> bytes:
    """Bytes before the first record stay: a header, a byte order mark."""
    stops = [*records.places[1:], len(text)]
    rows = zip(records.places, stops, records.theirs, strict=True)
    return text[: records.places[0]] + b"".join(text[start:stop] for start, stop, theirs in rows if not theirs)


def _without_rows(content: bytes, records: _Records) -> bytes:
    before, into = pq.ParquetFile(io.BytesIO(content)), io.BytesIO()
    stay = iter(not theirs for theirs in records.theirs)
    try:
        with pq.ParquetWriter(into, before.schema_arrow, compression=_codec(before)) as writer:
            for group in range(before.num_row_groups):
                rows = before.read_row_group(group)
                kept = rows.filter(pa.array([next(stay) for _ in range(rows.num_rows)], pa.bool_()))
                if kept.num_rows:
                    writer.write_table(kept)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as why:
        raise _Unclear(f"is Parquet that cannot be rewritten: {why}") from None
    after = into.getvalue()
    if pq.ParquetFile(io.BytesIO(after)).schema != before.schema:
        raise _Unclear("is Parquet with a schema that cannot be rewritten")
    return after


def _codec(parquet: pq.ParquetFile) -> str:
    codec: str = parquet.metadata.row_group(0).column(0).compression
    return "none" if codec == "UNCOMPRESSED" else codec.lower()
