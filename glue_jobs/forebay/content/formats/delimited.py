"""CSV, TSV and plain lines become records: a JSON object for each row, with the texts of the file.

In: a text, its dialect and, where the file has none, its header. Out: parts. A value is a text, digit for digit: `007` and
`1e5` are never numbers. CSV has no types, and a column that looks numeric today may not be numeric tomorrow; declared columns
have their types. An empty field is null, and `""` is an empty text. A row whose fields do not match the header is refused
alone. A header that names a column twice, or a quote that never closes, refuses the file: `NotTaken`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.content.encoding import Text
from forebay.content.formats.fields import NEWLINE, RETURN, Dialect, Rows, Torn, rows_of
from forebay.content.formats.json_text import SPACE, documents_of_texts, escaped, spelt
from forebay.content.formats.part import Part, part_of_rows, refuse_twins
from forebay.content.limits import Limits
from forebay.content.outcome import NotTaken, RecordReason, Refused, TooMany, kept_text
from forebay.content.splitting.lines import lines_of
from forebay.content.vetting import Split
from forebay.counted import counted
from forebay.declaration.personal import BLANKS
from forebay.privacy.likeness import is_no_name

_Odd = tuple[int, int, RecordReason, str]
"""Where a row that is none begins and ends, and why it is none."""

MADE_BYTES = 16 << 20
"""How much JSON is made at a time."""
PART_BYTES = 8 << 20
"""How much of it is handed on at a time at most: as much as a batch of rows takes."""
_NONE = np.zeros(0, np.int64)
MOST_COLUMNS = 10_000
LONGEST_NAME = 1024


@dataclass(frozen=True, slots=True)
class _Made:
    """An array of JSON documents, with the lines and places of their rows."""

    documents: Any
    lines: Any
    places: Any


def delimited_parts(
    text: Text, dialect: Dialect, header: Sequence[str], limits: Limits, *, personal: bool = False
) -> Iterator[Part]:
    """The parts, one stretch of the text at a time. If fields are `personal`, a header with personal values is refused,
    because names of columns are not treated."""
    utf8 = text.utf8
    if b"\n" not in utf8:
        utf8 = utf8.replace(b"\r", b"\n")
    at, line, offset = 0, 1, text.offset
    names, held = list(header), list[_Made]()
    try:
        for rows in rows_of(utf8, dialect):
            window = Text(utf8[at : rows.stop], offset, text.unit_bytes)
            rows = _counted_from(rows, at)
            if not names:
                names, rows = _with_header(rows, window.utf8, dialect)
                if personal and any(map(is_no_name, names)):
                    raise NotTaken("bad-header", "the first row holds personal values instead of names of columns")
            refused, made = _taken_apart(rows, window, names, dialect, line, limits)
            yield refused
            for some in made:
                if held and sum(one.documents.nbytes for one in [*held, some]) > PART_BYTES:
                    yield _part_of(held, limits)
                    held = []
                held.append(some)
            line += refused.records.line_count
            at, offset = at + rows.stop, offset + window.original_bytes
        yield _part_of(held, limits)
    except Torn as torn:
        opened = utf8.count(b"\n", 0, torn.at) + 1
        raise NotTaken("corrupt-file", f"the quote that opens on line {opened} never closes") from torn


def _counted_from(rows: Rows, at: int) -> Rows:
    broken = [(start - at, end - at, why) for start, end, why in rows.broken]
    return Rows(rows.first, rows.starts - at, rows.ends - at, broken, rows.stop - at)


def _with_header(rows: Rows, window: bytes, dialect: Dialect) -> tuple[list[str], Rows]:
    """The names from the first row that is not blank, and the rows after it. Without such a row there are no names."""
    for n, (first, stop) in enumerate(zip(rows.first[:-1].tolist(), rows.first[1:].tolist(), strict=True)):
        places = list(zip(rows.starts[first:stop].tolist(), rows.ends[first:stop].tolist(), strict=True))
        if places != [(places[0][0], places[0][0])]:
            if rows.broken and rows.broken[0][0] < places[0][0]:
                break
            return _names(places, window, dialect), Rows(
                rows.first[n + 1 :], rows.starts, rows.ends, rows.broken, rows.stop
            )
    if rows.broken:
        raise NotTaken(
            "bad-header",
            f"the header is not a row: {rows.broken[0][2]}",
            kept_text(window[:LONGEST_NAME], LONGEST_NAME),
        )
    return [], Rows(rows.first[-1:], rows.starts, rows.ends, [], rows.stop)


def _names(places: Sequence[tuple[int, int]], window: bytes, dialect: Dialect) -> list[str]:
    """The names without blanks around them. A column without a name gets its number as name."""
    if len(places) > MOST_COLUMNS:
        raise NotTaken("bad-header", f"it has {counted(len(places), 'column')}, and {MOST_COLUMNS:,} is the limit")
    names = []
    for number, (start, end) in enumerate(places, 1):
        name = window[start:end]
        if dialect.quote and name.startswith(dialect.quote):
            name = _unquoted(name, dialect)
        elif b"\r" in name.rstrip(b"\r"):
            detail = (
                f"the name of column {number} contains a carriage return: lines may end with carriage returns alone"
            )
            raise NotTaken("bad-header", detail, kept_text(window[:LONGEST_NAME], LONGEST_NAME))
        else:
            name = _bare(name, dialect)
        if len(name) > LONGEST_NAME:
            raise NotTaken("bad-header", f"the name of column {number} has {len(name)} bytes")
        try:
            names.append(name.decode().strip(BLANKS) or f"column_{number}")
        except UnicodeDecodeError as error:
            raise NotTaken("bad-header", f"the name of column {number} is not UTF-8: {name!r}") from error
    refuse_twins(names)
    return names


def _unquoted(name: bytes, dialect: Dialect) -> bytes:
    return name[1:-1].replace(2 * dialect.quote, dialect.quote)


def _bare(name: bytes, dialect: Dialect) -> bytes:
    """A name without its quotes, where blanks precede them: the dialect treats such quotes as ordinary characters."""
    bare, quote = name.strip(), dialect.quote
    is_quoted = quote and bare != name and len(bare) > 1 and bare.startswith(quote) and bare.endswith(quote)
    return _unquoted(bare, dialect) if is_quoted else name


def _taken_apart(
    rows: Rows, window: Text, names: Sequence[str], dialect: Dialect, line: int, limits: Limits
) -> tuple[Part, Iterator[_Made]]:
    """Separates malformed rows from the records of the others."""
    counts = np.diff(rows.first)
    starts, ends = rows.starts[rows.first[:-1]], rows.ends[rows.first[1:] - 1]
    filled = (counts > 1) | (ends > starts)
    is_small = ends - starts <= limits.max_record_bytes
    taken = filled & is_small & (counts == len(names))
    refused = list(_odd_rows(rows, np.flatnonzero(filled & ~taken), len(names), limits))
    lines, places = _lines_of_rows(starts, window.utf8, dialect) + (line - 1), window.offsets(starts)
    made = _made(np.flatnonzero(taken), rows, window.utf8, names, dialect)
    return _refused_part(refused, window, line), (_Made(one, lines[some], places[some]) for some, one in made)


def _made(taken: Any, rows: Rows, window: bytes, names: Sequence[str], dialect: Dialect) -> Iterator[tuple[Any, Any]]:
    """The JSON of these rows, in batches, with their numbers."""
    keys = [spelt(name) for name in names]
    is_plain = _are_plain(rows, window, dialect)
    at_once = max(1, MADE_BYTES // (sum(map(len, keys)) + 1))
    for begin in range(0, len(taken), at_once):
        some = taken[begin : begin + at_once]
        yield some, _documents(window, *_fields_of(some, rows, len(names)), keys, dialect, is_plain=is_plain)


def _part_of(held: Sequence[_Made], limits: Limits) -> Part:
    lines, places = (np.concatenate([_NONE, *some]) for some in ([m.lines for m in held], [m.places for m in held]))
    return part_of_rows([made.documents for made in held], lines, places, limits, 0)


def _fields_of(some: Any, rows: Rows, count: int) -> tuple[Any, Any]:
    """Where the fields of these rows begin and end. Usually no field of another row is between them."""
    first, stop = rows.first[some[0]], rows.first[some[-1]] + count
    if stop - first == len(some) * count:
        return rows.starts[first:stop], rows.ends[first:stop]
    fields = (rows.first[some][:, np.newaxis] + np.arange(count)).ravel()
    return rows.starts[fields], rows.ends[fields]


def _odd_rows(rows: Rows, odd: Any, count: int, limits: Limits) -> Iterator[_Odd]:
    """The odd rows, in the order of their positions."""
    if len(odd) + len(rows.broken) > limits.max_refused:
        raise TooMany("too-many-refused", f"more than {counted(limits.max_refused, 'row', 'does')} not fit the header")
    found: list[_Odd] = [(start, end, "not-a-row", why) for start, end, why in rows.broken]
    for first, stop in zip(rows.first[odd].tolist(), rows.first[odd + 1].tolist(), strict=True):
        start, end = int(rows.starts[first]), int(rows.ends[stop - 1])
        if end - start > limits.max_record_bytes:
            most = limits.max_record_bytes
            found.append((start, end, "record-too-large", f"{end - start} bytes, and {most} is the limit"))
        else:
            found.append((start, end, "not-a-row", f"{counted(stop - first, 'field')}, and the header has {count}"))
    yield from sorted(found)


def _lines_of_rows(starts: Any, window: bytes, dialect: Dialect) -> Any:
    """The line of each row in the window. Without a newline inside a row or a header before it, each row is a line."""
    if len(starts) and not starts[0] and not (dialect.quote and dialect.quote in window):
        return np.arange(1, len(starts) + 1)
    return lines_of(window, starts)


def _refused_part(refused: Sequence[_Odd], window: Text, line: int) -> Part:
    """It counts the lines of the whole window."""
    nothing = np.zeros(0, np.int64)
    lines = lines_of(window.utf8, np.array([start for start, *_ in refused], np.int64)) + (line - 1)
    rows = [
        Refused(start, end, n, reason, detail)
        for (start, end, reason, detail), n in zip(refused, lines.tolist(), strict=True)
    ]
    newlines = np.count_nonzero(np.frombuffer(window.utf8, np.uint8) == NEWLINE)
    line_count = int(newlines) + (not window.utf8.endswith(b"\n"))
    return Part(Split(nothing, nothing, nothing, rows, line_count, True), window)


def _documents(
    window: bytes, starts: Any, ends: Any, keys: Sequence[bytes], dialect: Dialect, *, is_plain: bool
) -> Any:
    """Every second stretch between borders is a field. It is copied only where JSON may write it differently."""
    is_null = starts == ends
    is_quoted = _are_quoted(window, starts, dialect) & ~is_null
    borders = np.stack((starts + is_quoted, ends - is_quoted), axis=1).ravel().astype(np.int32)
    buffers = [None, pa.py_buffer(borders), pa.py_buffer(window)]
    texts = pa.Array.from_buffers(pa.binary(), len(borders) - 1, buffers)
    places = np.arange(0, len(borders), 2)
    if not is_plain:
        texts = texts.take(pa.array(places))
        if is_quoted.any() and 2 * dialect.quote in window:
            single = pc.replace_substring(texts, 2 * dialect.quote, dialect.quote)
            texts = pc.if_else(pa.array(is_quoted), single, texts)
        texts, places = escaped(texts), np.arange(len(starts))
    return documents_of_texts(keys, texts, places.reshape(-1, len(keys)), is_null.reshape(-1, len(keys)))


def _are_quoted(window: bytes, starts: Any, dialect: Dialect) -> Any:
    if not dialect.quote or dialect.quote not in window:
        return np.zeros(len(starts), np.bool_)
    buffer = np.frombuffer(window, np.uint8)
    return buffer[np.minimum(starts, len(buffer) - 1)] == dialect.quote[0]


def _are_plain(rows: Rows, window: bytes, dialect: Dialect) -> bool:
    """Whether JSON writes all fields unchanged: characters to escape stand between them only."""
    if b"\\" in window or (dialect.quote != b'"' and b'"' in window):
        return False
    if dialect.quote and dialect.quote in window:
        is_quoted = _are_quoted(window, rows.starts, dialect) & (rows.ends > rows.starts)
        if window.count(dialect.quote) != 2 * np.count_nonzero(is_quoted):
            return False
    buffer = np.frombuffer(window, np.uint8)
    behind = buffer[rows.ends[rows.ends < len(buffer)]]
    between = np.count_nonzero(behind < SPACE) + np.count_nonzero(behind == RETURN)
    return bool(np.count_nonzero(buffer < SPACE) == between)
