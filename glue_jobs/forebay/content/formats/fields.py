"""Delimited text becomes rows, each with the places of its fields; quoted fields may hold newlines, and are never torn.

In: UTF-8 bytes, the delimiter, and the quote. Out: `Rows`, a stretch of the text at a time, and malformed rows with the
reason. numpy finds the borders of fields where every quote is in its place. Elsewhere the fields are read one by one, by the
same rules: a quote opens a field only as its first byte, two quotes within one are a quote, and the closing quote comes before
a delimiter or the line's end. A quote that never closes is `Torn`: it is unknown which of the following lines are rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

WINDOW_BYTES = 1 << 19
NEWLINE, RETURN = b"\n\r"

Broken = tuple[int, int, str]
"""Where a row that is none begins and ends, and why it is none."""


class Torn(Exception):
    """A quote opens at this byte and never closes."""

    def __init__(self, at: int) -> None:
        super().__init__(f"the quote at byte {at} never closes")
        self.at = at


@dataclass(frozen=True, slots=True)
class Dialect:
    """Single bytes, or nothing: text without a delimiter has one field a row."""

    delimiter: bytes = b","
    quote: bytes = b'"'


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of the text up to `stop`: row n has the fields `first[n]` up to `first[n + 1]`. A field's place includes its
    quotes."""

    first: Any
    starts: Any
    ends: Any
    broken: list[Broken]
    stop: int


def rows_of(text: bytes, dialect: Dialect, at: int = 0) -> Iterator[Rows]:
    """All rows from a row's beginning on. Raises `Torn`."""
    buffer = np.frombuffer(text, np.uint8)
    while at < len(text):
        found = _whole_rows(buffer, at, min(at + WINDOW_BYTES, len(text)), dialect)
        if found is None:
            found = _one_by_one(text, at, at + WINDOW_BYTES, dialect)
        yield found
        at = found.stop


def _whole_rows(buffer: Any, at: int, stop: int, dialect: Dialect) -> Rows | None:
    """The rows that end in a window; None where none does, or where a quote is out of place."""
    window = buffer[at:stop]
    is_border = window == NEWLINE
    if dialect.delimiter:
        is_border |= window == dialect.delimiter[0]
    borders = np.flatnonzero(is_border)
    quotes = np.flatnonzero(window == dialect.quote[0]) if dialect.quote else borders[:0]
    if len(quotes):
        is_within = np.bitwise_xor.accumulate((window == dialect.quote[0]).view(np.uint8))
        borders = borders[is_within[borders] == 0]
    newlines = np.flatnonzero(window[borders] == NEWLINE)
    if stop == len(buffer) and len(quotes) & 1 == 0 and window[-1] != NEWLINE:
        newlines, borders = np.append(newlines, len(borders)), np.append(borders, len(window))
    if not len(newlines):
        return None
    borders = borders[: newlines[-1] + 1]
    if not _are_well_placed(window, quotes[: np.searchsorted(quotes, borders[-1])], dialect):
        return None
    starts = np.concatenate(([0], borders[:-1] + 1))
    ends = borders.copy()
    ends[newlines] -= _stands_before(window, RETURN, borders[newlines]) & (borders[newlines] > starts[newlines])
    first = np.concatenate(([0], newlines + 1))
    return Rows(first, starts + at, ends + at, [], at + min(int(borders[-1]) + 1, len(window)))


def _stands_before(window: Any, byte: int, positions: Any) -> Any:
    """Whether this byte is right before each position; never for the end of a text without a newline."""
    return (positions < len(window)) & (window[positions - 1] == byte)


def _are_well_placed(window: Any, quotes: Any, dialect: Dialect) -> bool:
    """Whether each quote opens or closes a field, or is one of two inside a field."""
    if not len(quotes):
        return True
    quote = dialect.quote[0]
    borders = [NEWLINE, quote, *dialect.delimiter]
    opening, closing = quotes[0::2], quotes[1::2]
    before = np.where(opening > 0, window[opening - 1], NEWLINE)
    last = len(window) - 1
    after = np.where(closing < last, window[np.minimum(closing + 1, last)], NEWLINE)
    behind = np.where(closing + 1 < last, window[np.minimum(closing + 2, last)], 0)
    ends_line = (after == RETURN) & (behind == NEWLINE)
    return bool(np.isin(before, borders).all() and (np.isin(after, borders) | ends_line).all())


@dataclass(slots=True)
class _Fields:
    """The fields of the rows so far."""

    first: list[int]
    starts: list[int]
    ends: list[int]
    broken: list[Broken]


def _one_by_one(text: bytes, at: int, until: int, dialect: Dialect) -> Rows:
    """The rows that begin before a place; at least one row."""
    found = _Fields([0], [], [], [])
    plain = re.compile(b"[^\n" + re.escape(dialect.delimiter) + b"]*")
    q = re.escape(dialect.quote)
    quoted = re.compile(q + b"[^" + q + b"]*+(?:" + q + q + b"[^" + q + b"]*+)*+" + q) if q else None
    while at < min(until, len(text)):
        at = _add_row(text, at, plain, quoted, dialect, found)
    first, starts, ends = (np.array(a, np.int64) for a in (found.first, found.starts, found.ends))
    return Rows(first, starts, ends, found.broken, at)


def _add_row(
    text: bytes, at: int, plain: re.Pattern[bytes], quoted: re.Pattern[bytes] | None, dialect: Dialect, found: _Fields
) -> int:
    """Reads one row, and returns the start of the next one."""
    begin, starts, ends = at, list[int](), list[int]()
    while True:
        is_quoted = quoted is not None and text.startswith(dialect.quote, at)
        match = (quoted if is_quoted and quoted is not None else plain).match(text, at)
        if match is None:
            raise Torn(at)
        starts.append(at)
        end = match.end()
        after = text[end : end + 2]
        if is_quoted and after and after[:1] not in (b"\n", dialect.delimiter) and after != b"\r\n":
            newline = text.find(b"\n", end)
            end = len(text) if newline < 0 else newline
            found.broken.append((begin, end, "text follows the closing quote of a field"))
            return end + 1
        ends.append(end)
        at = end + 1
        if after[:1] != dialect.delimiter or not after:
            break
    if is_quoted:
        at += after == b"\r\n"
    elif after and ends[-1] > starts[-1] and text[end - 1] == RETURN:
        ends[-1] -= 1
    found.starts += starts
    found.ends += ends
    found.first.append(len(found.starts))
    return min(at, len(text))
