"""Text becomes records, each with its line and its place; what is no record is refused by itself, and the others land.

In: UTF-8 bytes in whatever layout: JSON lines, a JSON array, concatenated documents without newlines, documents printed
over many lines. Out: `Records`, or None where the text as a whole is no JSON (an image, a web page, a table).

A record is one JSON object. It is found, not parsed: it begins with `{`, ends with `}`, is UTF-8, not too long and not
too deep; whether its inside is right is for the parser to say. JSON lines are by far the most, so they are split by
numpy without a copy, and only lines that look odd are looked at one by one: a line that does not begin with `{` or end
with `}`, and one that has `}{` in it, because Spark's parser would take the first document of such a line and drop the
others without a word. (It does so, too, with a line such as `{"a":1},{"b":2}`, which we cannot tell cheaply from an
array's inside.)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from forebay.content.limits import Limits
from forebay.content.outcome import RecordReason, Refused
from forebay.content.shape import WHITE, Shape, shape_of, trimmed
from forebay.content.skeleton import skeleton

__all__ = ["HEAD_BYTES", "Records", "is_json_lines", "split", "split_lines"]

HEAD_BYTES = 64 << 10
"""How far we look to tell what a text is."""

NEWLINE, RETURN, OPEN, CLOSE = (ord(c) for c in "\n\r{}")
SHORT_BYTES = 1 << 20
STEP_BYTES = 1 << 20
LINES_LOOKED_AT = 100

_SEAM = re.compile(rb"\}[ \t\r]*\{")
_BLANK = re.compile(r"[ \t\r\n]*")

# Only borders are wanted, so numbers stay text (Python refuses to read those of more than 4,300 digits) and control
# characters within strings pass.
_DECODER = json.JSONDecoder(strict=False, parse_int=str, parse_float=str, parse_constant=str)


@dataclass(frozen=True, slots=True)
class Records:
    """Where the records are, ascending, and which were refused. `tight`: between two records is only white space."""

    starts: Any
    ends: Any
    lines: Any
    refused: list[Refused]
    line_count: int
    tight: bool


def split(text: bytes, limits: Limits) -> Records | None:
    """The records of a whole text; None where it is no JSON."""
    begin = _first_text(text)
    first = text[begin : begin + 1]
    if first == b"{":
        return _split_objects(text, begin, limits)
    if first == b"[":
        records = _by_shape(text, shape_of(text), limits)
        return records if len(records.starts) or not records.refused else None
    if first and (first == b"<" or not _has_record(text[:HEAD_BYTES])):
        return None
    return split_lines(text, limits)


def is_json_lines(head: bytes) -> bool:
    """Whether the text that begins so is JSON lines, judged by its first line, so that it can be cut at any newline."""
    begin = _first_text(head)
    return head[begin : begin + 1] == b"{" and _first_line_is_complete(head, begin)


def split_lines(text: bytes, limits: Limits) -> Records:
    """The records of JSON lines; no line can spoil another."""
    buffer = np.frombuffer(text, np.uint8)
    newlines = _newlines(buffer)
    starts = np.concatenate(([0], newlines + 1))
    ends = np.concatenate((newlines, [len(text)]))
    if starts[-1] == len(text):
        starts, ends = starts[:-1], ends[:-1]
    if not len(starts):
        return Records(starts, ends, starts, [], 0, True)
    last = buffer[ends - 1]
    returns = last == RETURN
    if returns.any():
        last = np.where(returns, buffer[ends - 2], last)
    plain = (buffer[starts] == OPEN) & (last == CLOSE)
    seams = {int(np.searchsorted(newlines, seam.start())) for seam in _SEAM.finditer(text)}
    plain[list(seams)] = False
    ends = np.where(returns, ends - 1, ends)
    return _vetted(text, _with_odd_lines(text, starts, ends, plain, seams), limits)


def _newlines(buffer: Any) -> Any:
    """Where they are, looked for in parts that the processor's cache holds."""
    parts = range(0, max(len(buffer), 1), STEP_BYTES)
    return np.concatenate([np.flatnonzero(buffer[at : at + STEP_BYTES] == NEWLINE) + at for at in parts])


def _split_objects(text: bytes, begin: int, limits: Limits) -> Records:
    """A broken first line looks like the first line of a document printed over many. Where that reading does not come
    out even, and most lines are records by themselves, it was a broken line. And behind a first line that is a record,
    documents may be printed over many lines: then some lines are none, and the brackets come out even all the same. So
    they may, by chance, around torn lines; but then what lies between them is no JSON."""
    if _first_line_is_complete(text, begin):
        by_line = split_lines(text, limits)
        shape = shape_of(text) if by_line.refused else None
        if shape is not None and shape.complete and not shape.leftovers:
            more = len(shape.starts) > len(by_line.starts)
            if more or _are_within_documents(text, shape, by_line.refused[:LINES_LOOKED_AT]):
                return _by_shape(text, shape, limits)
        return by_line
    shape = shape_of(text)
    if not shape.complete:
        by_line = split_lines(text, limits)
        if 2 * len(by_line.starts) > by_line.line_count:
            return by_line
    return _by_shape(text, shape, limits)


def _are_within_documents(text: bytes, shape: Shape, lines: list[Refused]) -> bool:
    """Whether lines that are no records are parts of the shape's, which the parser will take."""
    documents = np.searchsorted(shape.starts, [line.start for line in lines], "right") - 1
    if any(n < 0 or line.end > shape.ends[n] for n, line in zip(documents.tolist(), lines, strict=True)):
        return False
    return all(_decoded(text[shape.starts[n] : shape.ends[n]]) is not None for n in set(documents.tolist()))


def _first_text(text: bytes) -> int:
    """Where something other than white space begins."""
    at = 0
    while at < len(text):
        part = text[at : at + HEAD_BYTES]
        rest = part.lstrip(WHITE)
        if rest:
            return at + len(part) - len(rest)
        at += HEAD_BYTES
    return at


def _first_line_is_complete(text: bytes, begin: int) -> bool:
    end = text.find(b"\n", begin)
    line = text[begin : max(end, begin)].rstrip(WHITE)
    if not line.endswith(b"}"):
        return False
    return _decoded(line) is not None or shape_of(line).complete


def _has_record(head: bytes) -> bool:
    return any(_decoded(line) for line in head.splitlines() if line.startswith(b"{"))


def _by_shape(text: bytes, shape: Shape, limits: Limits) -> Records:
    newlines = _newlines(np.frombuffer(text, np.uint8))
    lines = np.searchsorted(newlines, shape.starts) + 1
    refused = [
        _refused_leftover(text, start, end, int(np.searchsorted(newlines, start)) + 1) for start, end in shape.leftovers
    ]
    line_count = len(newlines) + (not text.endswith(b"\n"))
    return _vetted(text, Records(shape.starts, shape.ends, lines, refused, line_count, shape.tight), limits)


def _with_odd_lines(text: bytes, starts: Any, ends: Any, plain: Any, seams: set[int]) -> Records:
    """Plain lines are records as they are; of the odd ones each is looked at."""
    lines = np.arange(1, len(starts) + 1)
    odd = np.flatnonzero(~plain)
    if not len(odd):
        return Records(starts, ends, lines, [], len(starts), True)
    found: list[tuple[int, int, int]] = []
    refused: list[Refused] = []
    tight = True
    for n, start, end in zip(odd.tolist(), starts[odd].tolist(), ends[odd].tolist(), strict=True):
        records, leftovers, line_is_tight = _in_line(text, start, end, seam=n in seams)
        tight = tight and line_is_tight
        found += [(a, b, n + 1) for a, b in records]
        refused += [_refused_leftover(text, a, b, n + 1) for a, b in leftovers]
    more = np.array(found, np.int64).reshape(-1, 3).T
    columns = [np.concatenate(pair) for pair in zip((starts[plain], ends[plain], lines[plain]), more, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return Records(columns[0][order], columns[1][order], columns[2][order], refused, len(starts), tight)


Places = list[tuple[int, int]]


def _in_line(text: bytes, start: int, end: int, *, seam: bool) -> tuple[Places, Places, bool]:
    """The records of one line, what in it is none, and whether only white space lies between the records."""
    place = trimmed(text, start, end)
    if place is None:
        return [], [], True
    start, end = place
    if text[start] == OPEN and text[end - 1] == CLOSE and not seam:
        return [place], [], True
    line = text[start:end]
    decoded = _decoded(line)
    if decoded is not None:
        return [(start + a, start + b) for a, b in decoded], [], True
    shape = shape_of(line)
    records = zip((shape.starts + start).tolist(), (shape.ends + start).tolist(), strict=True)
    return list(records), [(start + a, start + b) for a, b in shape.leftovers], shape.tight


def _decoded(line: bytes) -> Places | None:
    """The places of a short line's objects by Python's own decoder, which is quicker there than numpy; None where it is
    more than objects one after the other. Read as Latin-1, a byte is a character, and places need no translation."""
    if len(line) > SHORT_BYTES:
        return None
    text, at = line.decode("latin-1"), 0
    places: Places = []
    try:
        while at < len(text):
            value, end = _DECODER.raw_decode(text, at)
            if not isinstance(value, dict):
                return None
            places.append((at, end))
            at = _BLANK.match(text, end).end()  # type: ignore[union-attr]
    except (ValueError, RecursionError):
        return None
    return places


def _refused_leftover(text: bytes, start: int, end: int, line: int) -> Refused:
    reason, detail = _why_no_record(text[start:end])
    return Refused(start, end, line, reason, detail)


def _why_no_record(part: bytes) -> tuple[RecordReason, str]:
    if len(part) > SHORT_BYTES:
        return "not-json", "its brackets or quotes do not close"
    if b"\0" in part:
        return "not-json", "it holds NUL bytes"
    try:
        value = _DECODER.decode(part.decode("latin-1"))
    except ValueError as error:
        return "not-json", str(error)
    except RecursionError:
        return "not-an-object", "brackets nested very deep, and no object around them"
    return "not-an-object", f"a JSON {_KINDS.get(type(value), 'value')}"


_KINDS = {list: "array", str: "string or number", bool: "boolean", type(None): "null"}


def _vetted(text: bytes, records: Records, limits: Limits) -> Records:
    """Without the records that the parser, or a table, could not take."""
    starts, ends = records.starts, records.ends
    why: dict[int, tuple[RecordReason, str]] = {}
    for n in np.flatnonzero(ends - starts > limits.max_record_bytes).tolist():
        why[n] = ("record-too-large", f"{ends[n] - starts[n]} bytes, and {limits.max_record_bytes} is the limit")
    for n, depth in _too_deep(text, starts, ends, limits):
        why.setdefault(n, ("too-deep", f"nested {depth} levels deep, and {limits.max_depth} is the limit"))
    for n, detail in _not_utf8(text, starts, ends):
        why.setdefault(n, ("not-utf8", detail))
    refused = [_vetted_leftover(r, limits) for r in records.refused]
    if not why:
        return replace(records, refused=refused)
    refused += [Refused(int(starts[n]), int(ends[n]), int(records.lines[n]), *why[n]) for n in why]
    taken = np.ones(len(starts), np.bool_)
    taken[list(why)] = False
    return Records(
        starts[taken],
        ends[taken],
        records.lines[taken],
        sorted(refused, key=lambda r: r.start),
        records.line_count,
        False,
    )


def _vetted_leftover(refused: Refused, limits: Limits) -> Refused:
    """What is long above all is said to be long."""
    if refused.end - refused.start <= limits.max_record_bytes:
        return refused
    detail = f"more than {limits.max_record_bytes} bytes without a border"
    return replace(refused, reason="record-too-large", detail=detail)


def _too_deep(text: bytes, starts: Any, ends: Any, limits: Limits) -> Iterator[tuple[int, int]]:
    """A record of n levels has n opening brackets and n closing ones, which rules out nearly all without a look."""
    long = np.flatnonzero((ends - starts > 2 * limits.max_depth) & (ends - starts <= limits.max_record_bytes))
    for n, start, end in zip(long.tolist(), starts[long].tolist(), ends[long].tolist(), strict=True):
        if text.count(b"{", start, end) + text.count(b"[", start, end) > limits.max_depth:
            depth = skeleton(text[start:end]).deepest
            if depth > limits.max_depth:
                yield n, depth


def _not_utf8(text: bytes, starts: Any, ends: Any) -> Iterator[tuple[int, str]]:
    if _is_utf8(text):
        return
    for n, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        try:
            text[start:end].decode()
        except UnicodeDecodeError as error:
            yield n, f"{error.reason} {text[start + error.start]:#04x} at byte {error.start} of the record"


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        whole = pa.py_buffer(np.array([0, len(text)], np.int32))
        pa.StringArray.from_buffers(1, whole, pa.py_buffer(text)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
