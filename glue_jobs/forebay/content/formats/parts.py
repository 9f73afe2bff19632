"""The content of a file becomes parts, whatever its format.

In: a content, its key, and the declared form. Out: parts, each with its records; or `NotTaken` for the whole, at any
time. A part that came before does not count then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from forebay.content.encoding import Text, decoded
from forebay.content.exploded import with_exploded
from forebay.content.formats.avro import avro_parts
from forebay.content.formats.delimited import delimited_parts
from forebay.content.formats.fields import Dialect
from forebay.content.formats.parquet import parquet_parts
from forebay.content.formats.part import Part
from forebay.content.limits import Limits
from forebay.content.members import Content
from forebay.content.outcome import FileReason, NotTaken, TooMany
from forebay.content.signature import format_of, looks_like
from forebay.content.splitting.split import HEAD_BYTES, split, split_json_lines, without_separators
from forebay.content.unpack import is_named_archive
from forebay.declaration.form import Form, Format

BINARY = {"parquet": parquet_parts, "avro": avro_parts}
DELIMITERS = (b",", b";", b"\t", b"|")
HINT = re.compile(rb'"?sep=([,;\t|])"?\r?\n', re.IGNORECASE)
LINES = Dialect(b"", b"")
TEXT = ("text",)
"""The column of plain lines."""


def parts_of(content: Content, form: Form, limits: Limits) -> Iterator[Part]:
    try:
        yield from _parts(content, form, limits)
    except TooMany as too_many:
        raise NotTaken(too_many.reason, _detail_of(content, too_many.detail), content.head) from too_many
    except NotTaken as refusal:
        raise NotTaken(refusal.why.reason, _detail_of(content, refusal.why.detail), refusal.why.head) from refusal


def _detail_of(content: Content, detail: str) -> str:
    return f"in {content.key}: {detail}" if content.is_member else detail


def _parts(content: Content, form: Form, limits: Limits) -> Iterator[Part]:
    kind: Format = form.format if content.cut else format_of(content.data, content.key, form)
    if kind in BINARY:
        for part in _bounded(BINARY[kind](content.data, limits.of_archive(len(content.data))), content, limits):
            _refuse_to_explode(part, kind, form, limits)
            yield part
        return
    text = Text(content.data, content.offset) if content.cut and content.offset else decoded(content.data)
    if kind == "lines":
        yield from delimited_parts(text, LINES, TEXT, limits)
    elif kind in ("csv", "tsv"):
        text, named = _without_hint(text)
        dialect = Dialect(named or _delimiter(kind, form, text), form.quote.encode())
        yield from _bounded(
            delimited_parts(text, dialect, form.header, limits, personal=bool(form.personal)), content, limits
        )
    else:
        yield from _bounded(iter([_json(content, text, form, limits)]), content, limits)


def _without_hint(text: Text) -> tuple[Text, bytes]:
    """Excel names the delimiter in a line before the header. It becomes a blank one, so that lines stay what they are."""
    hint = HINT.match(text.utf8)
    if hint is None:
        return text, b""
    left_out = (hint.end() - 1) * text.unit_bytes
    return Text(b"\n" + text.utf8[hint.end() :], text.offset + left_out, text.unit_bytes), hint[1]


def _delimiter(kind: Format, form: Form, text: Text) -> bytes:
    """The delimiter of a file that is CSV only by its name: the most frequent one in its first line."""
    if form.delimiter or kind == "tsv":
        return form.delimiter.encode() or b"\t"
    line = text.utf8[:HEAD_BYTES].lstrip().partition(b"\n")[0] if form.format == "auto" else b""
    return max(DELIMITERS, key=line.count)


def _refuse_to_explode(part: Part, kind: Format, form: Form, limits: Limits) -> None:
    """Refuses to explode: the number of a row identifies it, and its elements would have no number."""
    rows = part.records
    if form.exploded and len(with_exploded(part.text.utf8, rows, form.exploded, limits).starts) > len(rows.starts):
        raise NotTaken("wrong-format", f"a table explodes an array of its rows, but rows of {kind} cannot be exploded")


def _bounded(parts: Iterator[Part], content: Content, limits: Limits) -> Iterator[Part]:
    """Rows repeat the names of their columns, elements what surrounds them, and a Parquet file says a long value once for many
    rows."""
    made, most = 0, max(limits.max_expanded_bytes, limits.max_expansion * len(content.data))
    for part in parts:
        made += len(part.text.utf8) + part.records.bytes_around
        if made > most:
            raise NotTaken("expansion-bomb", f"{len(content.data)} bytes become more than {most} bytes of records")
        yield part


def _json(content: Content, text: Text, form: Form, limits: Limits) -> Part:
    text = replace(text, utf8=without_separators(text.utf8))
    records = (split_json_lines if content.cut else split)(text.utf8, limits, form.inside)
    if records is None:
        raise _not_json(content)
    return Part(with_exploded(text.utf8, records, form.exploded, limits), text)


def _not_json(content: Content) -> NotTaken:
    """Content with the name of an archive that is neither an archive nor text is treated as a broken archive."""
    named_falsely = is_named_archive(content.key) and not content.was_packed
    reason: FileReason = "corrupt-archive" if named_falsely else "not-json"
    return NotTaken(
        reason, f"it begins like {looks_like(content.data) or 'neither JSON nor another known format'}", content.head
    )
