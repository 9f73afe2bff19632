"""An object that landed, without the records of erased persons: what is left of it, byte by byte as it was.

In: the bytes of an object, and who is erased. Out: `Left`: the bytes that stay, or why nobody can tell. Only files of one JSON
object a line can be taken apart, as they are or packed by gzip. Of a file that is one document, or one array of records, it is
known whether all of it is theirs. Pure.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from forebay.content.limits import Limits
from forebay.content.unpack import expand, is_archive
from forebay.declaration.form import Keys
from forebay.privacy.subject import subject_tokens
from forebay.upkeep.erase.rows import Erased

__all__ = ["Left", "left_of"]

GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class Left:
    """`records` are those that leave. `content` is None where none does, and empty where nothing is left. `unclear`: why nobody
    can tell whose the records are, or cannot take them out alone."""

    records: int = 0
    content: bytes | None = None
    unclear: str = ""


class _Unclear(ValueError):
    """Whose a part of the text is."""


def left_of(content: bytes, paths: Sequence[Keys], erased: Erased) -> Left:
    try:
        text = _unpacked(content)
        try:
            records, kept = _without(text, paths, erased)
        except (json.JSONDecodeError, UnicodeDecodeError):
            return _of_one_document(text, paths, erased)
    except (_Unclear, RecursionError) as why:
        return Left(unclear=str(why))
    if not records:
        return Left()
    left = b"".join(kept)
    if not left.strip():
        return Left(records, b"")
    return Left(records, gzip.compress(left, mtime=0) if content.startswith(GZIP) else left)


def _unpacked(content: bytes) -> bytes:
    if not content.startswith(GZIP):
        if is_archive(content):
            raise _Unclear("is packed, and not by gzip")
        return content
    text = expand(content, Limits())
    if not isinstance(text, bytes):
        raise _Unclear(f"cannot be unpacked: {text.detail}")
    return text


def _without(text: bytes, paths: Sequence[Keys], erased: Erased) -> tuple[int, list[bytes]]:
    kept, records = [], 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        theirs = line.strip() and _is_theirs(_object(line), line.decode("utf-8-sig"), paths, erased, f"line {number}")
        records += bool(theirs)
        if not theirs:
            kept.append(line)
    return records, kept


def _object(line: bytes) -> object:
    found = json.loads(line)
    if not isinstance(found, dict):
        raise json.JSONDecodeError("no object", "", 0)
    return found


def _is_theirs(found: object, text: str, paths: Sequence[Keys], erased: Erased, where: str) -> bool:
    tokens = subject_tokens(text, paths, erased.secret)
    if tokens & erased.tokens and not tokens <= erased.tokens:
        raise _Unclear(f"{where} is of others, too")
    return bool(tokens & erased.tokens)


def _of_one_document(text: bytes, paths: Sequence[Keys], erased: Erased) -> Left:
    try:
        document = json.loads(text)
    except ValueError:
        raise _Unclear("is no file of one JSON object a line") from None
    whose = list(_whose(document, paths, erased))
    if not any(whose):
        return Left()
    if not all(whose):
        raise _Unclear("is one document, with records of others")
    return Left(len(whose), b"")


def _whose(document: object, paths: Sequence[Keys], erased: Erased) -> Iterator[bool]:
    """Of each record, whether it is theirs."""
    for record in document if isinstance(document, list) else [document]:
        yield _is_theirs(record, json.dumps(record), paths, erased, "a record")
