"""Decides the format of a content: by its first bytes, by the declaration, and last by its name.

In: the content, its key, and the declared form. Out: the format that it is read as, or `NotTaken` if it begins like another
format than the declared one. Only CSV and TSV are recognised by name, because nothing in their content identifies them.
"""

from __future__ import annotations

import re

from forebay.content.members import HEAD_CHARACTERS, is_zip
from forebay.content.outcome import FileReason, NotTaken, kept_text
from forebay.content.unpack import is_archive, without_archive_suffix
from forebay.declaration.form import Form, Format

ENCRYPTED = "an encrypted Parquet file, which is not read"
_SIGNATURES = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"PK\x03\x04", "a zip archive within an archive, which is not read"),
    (b"\xfd7zXZ\0", "an xz archive, which is not read"),
    (b"\x04\x22\x4d\x18", "an lz4 archive, which is not read"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive, which is not read"),
    (b"\x82SNAPPY\0", "a snappy-java stream, which is not read (the framing format is)"),
    (b"PAR1", "a Parquet file"),
    (b"Obj\x01", "an Avro file"),
    (b"ARROW1", "an Arrow file, which is not read"),
    (b"%PDF", "a PDF file"),
    (b"<", "HTML or XML"),
)
_AT_BOTH_ENDS = ((b"PARE", b"PARE", ENCRYPTED), (b"ORC", b"ORC.", "an ORC file"))
"""Text may begin with such a word, too. A byte of any value follows the last word of ORC."""

BINARY: dict[str | None, Format] = {"a Parquet file": "parquet", "an Avro file": "avro"}
TEXTUAL = ("HTML or XML",)

_BEGINS_AS_JSON = re.compile(rb"(?:\xef\xbb\xbf)?[\s\x1e]*(?:\{|\[\s*\{)")


def looks_like(content: bytes) -> str | None:
    """The apparent format, in words; None for text of any kind."""
    head = content[:256].lstrip()
    for signature, name in _SIGNATURES:
        if head.startswith(signature):
            return name
    for first, last, name in _AT_BOTH_ENDS:
        if content.startswith(first) and re.fullmatch(last, content[-4:], re.DOTALL):
            return name
    if content[257:262] == b"ustar":
        return "a tar archive, which is not read"
    if b"\0" in head.partition(b"\n")[0] and not content.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")):
        return "binary data, or as UTF-16 without a byte order mark"
    return None


def is_packed(content: bytes) -> bool:
    """Whether it may expand: an archive, Parquet or Avro."""
    return is_archive(content) or is_zip(content) or looks_like(content) in BINARY


def format_of(content: bytes, key: str, form: Form) -> Format:
    """The format that the content is read as; never `auto`."""
    looks = looks_like(content)
    if looks == ENCRYPTED:
        raise _not_taken("encrypted", f"it begins like {looks}", content)
    if form.format == "auto":
        return BINARY[looks] if looks in BINARY else _named(content, key, looks)
    if form.format == "json" or not content:
        return "json"
    if looks in BINARY and BINARY[looks] == form.format:
        return form.format
    if form.format in BINARY.values():
        looks = looks or "text"
    elif form.format == "lines":
        looks = None if looks in TEXTUAL else looks
    elif looks is None and _BEGINS_AS_JSON.match(content):
        looks = "JSON"
    if looks is not None:
        raise _not_taken("wrong-format", f"{form.format} is declared, but it begins like {looks}", content)
    return form.format


def _not_taken(reason: FileReason, detail: str, content: bytes) -> NotTaken:
    return NotTaken(reason, detail, kept_text(content[:HEAD_CHARACTERS], HEAD_CHARACTERS))


def _named(content: bytes, key: str, looks: str | None) -> Format:
    if looks is None and not _BEGINS_AS_JSON.match(content):
        name = without_archive_suffix(key)
        if name.endswith(".csv"):
            return "csv"
        if name.endswith((".tsv", ".tab")):
            return "tsv"
    return "json"
