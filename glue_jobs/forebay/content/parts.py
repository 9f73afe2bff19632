"""The content of a file becomes parts, whatever its format.

In: a content, its key, and the declared form. Out: parts, of which each has its records; or `NotTaken` for the whole, at any
time. A part that came before does not count then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from forebay.content.delimited import delimited_parts
from forebay.content.encoding import Text, decoded
from forebay.content.fields import Dialect
from forebay.content.limits import Limits
from forebay.content.outcome import FileReason, NotTaken, TooMany, kept_text
from forebay.content.part import Part
from forebay.content.signature import HEAD_CHARACTERS, format_of, looks_like
from forebay.content.split import split, split_json_lines
from forebay.content.unpack import is_named_archive
from forebay.declaration.form import Form, Format

__all__ = ["Content", "parts_of"]

LINES = Dialect(b"", b"")
TEXT = ("text",)
"""The column of plain lines."""


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes of a file, unpacked. `offset` is not 0 for lines of a larger file, which are `cut` from it."""

    key: str
    data: bytes
    was_packed: bool = False
    cut: bool = False
    offset: int = 0

    @property
    def head(self) -> str:
        return kept_text(self.data[:HEAD_CHARACTERS], HEAD_CHARACTERS)


def parts_of(content: Content, form: Form, limits: Limits) -> Iterator[Part]:
    try:
        yield from _parts(content, form, limits)
    except TooMany as too_many:
        raise NotTaken(too_many.reason, too_many.detail, content.head) from too_many


def _parts(content: Content, form: Form, limits: Limits) -> Iterator[Part]:
    kind: Format = form.format if content.cut else format_of(content.data, content.key, form)
    text = Text(content.data, content.offset) if content.cut and content.offset else decoded(content.data)
    if kind == "lines":
        yield from delimited_parts(text, LINES, TEXT, limits)
    elif kind in ("csv", "tsv"):
        delimiter = form.delimiter or ("\t" if kind == "tsv" else ",")
        yield from delimited_parts(text, Dialect(delimiter.encode(), form.quote.encode()), form.header, limits)
    else:
        yield _json(content, text, form, limits)


def _json(content: Content, text: Text, form: Form, limits: Limits) -> Part:
    records = (split_json_lines if content.cut else split)(text.utf8, limits, form.inside)
    if records is None:
        raise _not_json(content)
    return Part(records, text)


def _not_json(content: Content) -> NotTaken:
    """What calls itself an archive and is neither that nor text is taken for a broken one."""
    named_falsely = is_named_archive(content.key) and not content.was_packed
    reason: FileReason = "corrupt-archive" if named_falsely else "not-json"
    return NotTaken(reason, f"it begins as {looks_like(content.data) or 'text that is no JSON'}", content.head)
