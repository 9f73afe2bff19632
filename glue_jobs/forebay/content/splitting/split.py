"""Text becomes records, each with its line and its place. A piece that is not a record is refused alone, and the others land.

In: UTF-8 bytes in whatever layout: JSON lines, a JSON array, concatenated documents without newlines, documents printed
over many lines, some of each. Out: `Split`, or None where the text as a whole is not JSON (an image, a web page, a table).
Raises `TooMany`.

A record is one JSON object. It is found, not parsed: it begins with `{`, ends with `}`, is UTF-8, not too long and not too
deep. The parser checks its contents later. The first line alone does not decide the layout. If lines are not records, the
brackets of the whole text are tried. If these are unbalanced, or enclose no JSON, `salvage` reads lines one by one, and
documents over many lines between them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from forebay.content.elements import as_one_document, taken_apart
from forebay.content.limits import Limits
from forebay.content.outcome import TooMany
from forebay.content.splitting.lines import SHORT_BYTES, Records, Span, decoded_places, lines_of, split_lines
from forebay.content.splitting.salvage import salvaged
from forebay.content.splitting.skeleton import Skeleton
from forebay.content.splitting.structure import WHITE, Structure, outline_of, structure_in, structure_of
from forebay.content.vetting import Split, is_value, vetted
from forebay.declaration.form import Keys
from forebay.texts import DECODER

HEAD_BYTES = 64 << 10
"""The reader decides what a text is from this many bytes."""

TINY_BYTES = 4 << 10
"""The length of a line that Python's decoder reads before numpy has begun: a file, or a member of an archive, may be one
record."""

LOOKED_AT = 100
_BEGINS = re.compile(rb"^[\[{]", re.MULTILINE)
_SEPARATOR = b"\x1e"
PATIENCE = 10
"""How many times more lines than may be refused are taken for no records, before lines are given up for brackets."""


def without_separators(text: bytes) -> bytes:
    """A JSON text sequence (RFC 7464) has a byte before each record that no JSON has. It becomes white space, so that all
    places stay. Where a record is torn, the next one begins a line of its own."""
    if _SEPARATOR not in text:
        return text
    begin = _first_text(text)
    is_sequence = text[begin : begin + 1] == _SEPARATOR
    text = text.replace(b"\n" + _SEPARATOR, b"\n ")
    return text[:begin] + b" " + text[begin + 1 :].replace(_SEPARATOR, b"\n") if is_sequence else text


def split(text: bytes, limits: Limits, inside: Sequence[Keys] = ()) -> Split | None:
    """The records of a whole text, those inside of its documents where arrays are named; None where it is not JSON."""
    begin = _first_text(text)
    first = text[begin : begin + 1]
    if first == b"[":
        outline = outline_of(text, limits)
        records = _split_array(text, outline, limits)
        if not len(records.starts) and not _are_values(text[a:b] for a, b, _ in records.leftovers):
            return None
        records = _with_open_array(text, records, outline)
        return vetted(text, taken_apart(text, records, inside, limits), limits)
    if first and first != b"{" and (first == b"<" or not (_has_record(text[:HEAD_BYTES]) or _is_of_values(text))):
        return None
    taken = _one_document(text, begin, limits, inside) if first == b"{" and inside else None
    if taken is None:
        taken = taken_apart(text, _split_objects(text, begin, limits), inside, limits)
    return vetted(text, taken, limits)


def split_json_lines(text: bytes, limits: Limits, inside: Sequence[Keys] = ()) -> Split:
    """The records of JSON lines; no line can spoil another."""
    return vetted(text, taken_apart(text, split_lines(text, limits), inside, limits), limits)


def may_be_joined(text: bytes) -> bool:
    """Whether `split` takes a text line by line, if each of its lines is a record."""
    line = text.partition(b"\n")[0].rstrip(WHITE)
    return text[:1] == b"{" and line[-1:] == b"}" and _SEPARATOR not in text and _is_decoded(line)


def is_json_lines(head: bytes) -> bool:
    """Whether the text that begins so is JSON lines, so that it can be cut at any newline. Most of its lines must begin and
    end as records do. Inner lines of a document do not count: they stand further in."""
    begin = _first_text(head)
    lines = head[begin:].split(b"\n")[:-1]
    if head[begin : begin + 1] != b"{" or not lines:
        return False
    indent = begin - (head.rfind(b"\n", 0, begin) + 1)
    records = others = 0
    for line in filter(None, (line.rstrip(WHITE) for line in lines)):
        is_record = (
            len(line) - len(line.lstrip(WHITE)) <= indent and line.lstrip(WHITE)[:1] == b"{" and line[-1:] == b"}"
        )
        records, others = records + is_record, others + (not is_record)
    return records > others


def _split_objects(text: bytes, begin: int, limits: Limits) -> Records:
    """Behind a first line that is a record, documents may be printed over many lines: then some lines are none, and the
    brackets are balanced. By chance they may be, around torn lines, but then the text between them is not JSON."""
    newline = text.find(b"\n", begin)
    if newline < 0 or _first_text(text, newline) == len(text):
        return _split_one_line(text, begin, limits)
    shape = None if _first_line_is_complete(text, begin, limits) else _even_shape(text, limits)
    if shape is not None and _holds_json(text, shape, range(LOOKED_AT)):
        return _by_shape(text, shape)
    try:
        by_line = split_lines(text, limits, most_leftovers=PATIENCE * limits.max_refused)
    except TooMany:
        shape = shape or _even_shape(text, limits)
        if shape is None:
            raise
        return _by_shape(text, shape)
    if not by_line.leftovers:
        return by_line
    shape = shape or _even_shape(text, limits)
    if shape is not None and _are_within_documents(text, shape, by_line.leftovers[:LOOKED_AT]):
        return _by_shape(text, shape)
    return salvaged(text, by_line, limits)


def _one_document(text: bytes, begin: int, limits: Limits, inside: Sequence[Keys]) -> Records | None:
    """The records inside of a text that is one long document."""
    newline, end = text.find(b"\n", begin), _last_text(text)
    if 0 <= newline < end and _first_line_is_complete(text, begin, limits):
        return None
    return as_one_document(text, begin, end, inside, limits)


def _split_one_line(text: bytes, begin: int, limits: Limits) -> Records:
    if not _last_text(text):
        return split_lines(text, limits)
    tiny = _decoded(text, begin) if len(text) <= TINY_BYTES else None
    if tiny is not None:
        return tiny
    shape = structure_of(text, limits)
    by_shape = _by_shape(text, shape)
    return by_shape if shape.complete else salvaged(text, by_shape, limits)


def _decoded(text: bytes, begin: int) -> Records | None:
    """The records of a text that consists only of objects, one after the other."""
    places, torn_at = decoded_places(text[begin:])
    if not places or torn_at is not None:
        return None
    starts, ends = np.array(places, np.int64).T + begin
    line_count = text.count(b"\n") + (not text.endswith(b"\n"))
    return Records(starts, ends, lines_of(text, starts), [], line_count, True)


def _split_array(text: bytes, outline: Skeleton, limits: Limits) -> Records:
    """The records of an array. If its brackets are unbalanced, it is read line by line, unless that finds less JSON: a
    bracket may be in a torn string."""
    shape = structure_in(text, 0, len(text), outline)
    by_shape = _by_shape(text, shape)
    if shape.complete:
        return by_shape
    try:
        by_line = split_lines(text, limits, most_leftovers=PATIENCE * limits.max_refused)
    except TooMany:
        return by_shape
    by_line = salvaged(text, by_line, limits)
    return by_line if _count_json(text, by_line) >= _count_json(text, by_shape) else by_shape


def _with_open_array(text: bytes, records: Records, outline: Skeleton) -> Records:
    """The bracket of an array that the text ends within is left over, so that nobody takes the text for all of it. Where quotes
    are missing, brackets are not what they seem: an array at the end of the text counts as closed, and a bracket within a
    record opens none."""
    at = outline.open_array
    end = _last_text(text)
    is_unsure = outline.in_string_at_end or outline.torn_string
    if at is None or (is_unsure and (text[end - 1 : end] == b"]" or _is_within(records, at))):
        return records
    line = int(lines_of(text, np.array([at]))[0])
    return replace(records, leftovers=sorted([*records.leftovers, (at, at + 1, line)]), tight=False)


def _is_within(records: Records, at: int) -> bool:
    before = int(np.searchsorted(records.starts, at, "right")) - 1
    return before >= 0 and at < int(records.ends[before])


def _are_values(parts: Iterable[bytes]) -> bool:
    """Whether the examined values are JSON."""
    return all(is_value(part) for part in islice(parts, LOOKED_AT))


def _is_of_values(text: bytes) -> bool:
    """Whether the text is lines of JSON without an object. A long text is judged by the whole lines of its head."""
    lines = (text if len(text) <= SHORT_BYTES else text[:HEAD_BYTES].rpartition(b"\n")[0]).splitlines()
    filled = [line.strip(WHITE) for line in lines if line.strip(WHITE)]
    return bool(filled) and _are_values(filled)


def _count_json(text: bytes, records: Records) -> int:
    return sum(map(_is_json, (text[a:b] for a, b in zip(records.starts.tolist(), records.ends.tolist(), strict=True))))


def _is_json(part: bytes) -> bool:
    """Whether it is valid JSON to the last character; long texts are not checked."""
    try:
        return len(part) > SHORT_BYTES or isinstance(json.loads(part.decode("latin-1")), dict)
    except (ValueError, RecursionError):
        return False


def _even_shape(text: bytes, limits: Limits) -> Structure | None:
    """The shape of a text with balanced brackets and nothing else between the records."""
    shape = structure_of(text, limits)
    return shape if shape.complete and not shape.leftovers else None


def _are_within_documents(text: bytes, shape: Structure, leftovers: list[Span]) -> bool:
    """Whether the lines that are not records are parts of the shape's, which the parser will take."""
    documents = np.searchsorted(shape.starts, [start for start, _, _ in leftovers], "right") - 1
    return _holds_json(text, shape, sorted(set(np.maximum(documents, 0).tolist())))


def _holds_json(text: bytes, shape: Structure, numbers: Iterable[int]) -> bool:
    """Whether these records of the shape are JSON; missing ones are ignored."""
    places = ((int(shape.starts[n]), int(shape.ends[n])) for n in numbers if n < len(shape.starts))
    return all(end - start > SHORT_BYTES or _is_decoded(text[start:end]) for start, end in places)


def _first_text(text: bytes, at: int = 0) -> int:
    """Where something other than white space begins, from there on."""
    while at < len(text):
        part = text[at : at + HEAD_BYTES]
        rest = part.lstrip(WHITE)
        if rest:
            return at + len(part) - len(rest)
        at += len(part)
    return at


def _last_text(text: bytes) -> int:
    """The end of the last text that is not white space; 0 where there is none."""
    end = len(text)
    while end:
        part = text[max(0, end - HEAD_BYTES) : end]
        rest = part.rstrip(WHITE)
        if rest:
            return end - len(part) + len(rest)
        end -= len(part)
    return 0


def _first_line_is_complete(text: bytes, begin: int, limits: Limits) -> bool:
    end = text.find(b"\n", begin)
    line = text[begin : max(end, begin)].rstrip(WHITE)
    return line.endswith(b"}") and (_is_decoded(line) or structure_of(line, limits).complete)


def _is_decoded(part: bytes) -> bool:
    """Whether it is objects, one after the other, and nothing else."""
    places, torn_at = decoded_places(part)
    return bool(places) and torn_at is None


def _has_record(head: bytes) -> bool:
    """Whether an object, or an array of some, begins with one of its lines. It may be printed over many."""
    places = (match.end() - 1 for match in islice(_BEGINS.finditer(head), LOOKED_AT))
    return any(_is_object_at(head, at) for at in places)


def _is_object_at(head: bytes, at: int) -> bool:
    try:
        value, _ = DECODER.raw_decode(head[at:].decode("latin-1"))
    except (ValueError, RecursionError):
        return False
    return isinstance(value[0] if isinstance(value, list) and value else value, dict)


def _by_shape(text: bytes, shape: Structure) -> Records:
    lines = lines_of(text, shape.starts)
    begin = [start for start, _ in shape.leftovers]
    numbers = lines_of(text, np.array(begin, np.int64)).tolist()
    leftovers = [(start, end, line) for (start, end), line in zip(shape.leftovers, numbers, strict=True)]
    line_count = text.count(b"\n") + (not text.endswith(b"\n"))
    return Records(shape.starts, shape.ends, lines, leftovers, line_count, shape.tight)
