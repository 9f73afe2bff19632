"""JSON lines become records: each line is examined alone, so no line can spoil another.

In: UTF-8 bytes. Out: `Records`. numpy finds the lines and accepts those that begin with `{` and end with `}` unchanged. It
works a block at a time, so memory does not grow with the number of lines. Only the other lines, and those that contain `}{`,
are read one by one. Spark's parser would take the first document of such a line and drop the rest silently. (It does the same
with `{"a":1},{"b":2}`, which cannot be distinguished cheaply from the inside of an array.)
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forebay.content.limits import Limits
from forebay.content.outcome import TooMany
from forebay.content.splitting.structure import BETWEEN, Structure, structure_of, trimmed
from forebay.counted import counted
from forebay.texts import BLANK, DECODER

NEWLINE, RETURN, OPEN, CLOSE, COMMA = (ord(c) for c in "\n\r{},")
SHORT_BYTES = 1 << 20
BLOCK_BYTES = 1 << 20
TRIMMED_AT_ONCE = 32
"""White space at a line's borders is taken off all lines at once, up to this many bytes."""

SEAM = re.compile(rb"\}[ \t\r]*\{")
_BETWEEN = re.compile(rf"[{re.escape(BETWEEN.decode())}]*")
_IS_WHITE = np.zeros(256, np.bool_)
_IS_WHITE[list(b" \t\r")] = True
_IS_WHITE_OR_COMMA = _IS_WHITE.copy()
_IS_WHITE_OR_COMMA[COMMA] = True
_IS_TEXT = np.ones(256, np.bool_)
_IS_TEXT[list(BETWEEN)] = False

# Only borders are wanted, so numbers stay text (Python refuses to read those of more than 4,300 digits) and control
# characters within strings pass.


Span = tuple[int, int, int]
"""Where something begins and ends, and on which line it begins."""


@dataclass(frozen=True, slots=True)
class Records:
    """The places of the records, ascending, and of text that is not a record. `tight`: between two records is only white
    space."""

    starts: Any
    ends: Any
    lines: Any
    leftovers: list[Span]
    line_count: int
    tight: bool
    parents: Any = None
    """Which of the `surroundings` each record has, -1 for none; None where no record has any."""
    surroundings: Sequence[bytes] = ()


def split_lines(text: bytes, limits: Limits, *, most_leftovers: int | None = None) -> Records:
    """The records of JSON lines. Raises `TooMany`."""
    found = _Found(limits, limits.max_refused if most_leftovers is None else most_leftovers)
    for start, stop in blocks(text):
        _split_block(text, start, stop, found)
    return found.records()


@dataclass(slots=True)
class _Found:
    """The records of the blocks so far."""

    limits: Limits
    most_leftovers: int
    starts: list[Any] = field(default_factory=list)
    ends: list[Any] = field(default_factory=list)
    lines: list[Any] = field(default_factory=list)
    leftovers: list[Span] = field(default_factory=list)
    count: int = 0
    line_count: int = 0
    tight: bool = True

    def add(self, starts: Any, ends: Any, lines: Any) -> None:
        self.count += len(starts)
        if self.count > self.limits.max_records:
            raise TooMany("too-many-records", f"more than {counted(self.limits.max_records, 'record')}")
        self.starts.append(starts)
        self.ends.append(ends)
        self.lines.append(lines)

    def leave(self, start: int, end: int, line: int) -> None:
        self.leftovers.append((start, end, line))
        if len(self.leftovers) > self.most_leftovers:
            raise TooMany("too-many-refused", f"more than {self.most_leftovers} pieces of it are not records")

    def records(self) -> Records:
        nothing = np.zeros(0, np.int64)
        starts, ends, lines = (np.concatenate([nothing, *some]) for some in (self.starts, self.ends, self.lines))
        tight = self.tight and not self.leftovers
        return Records(starts, ends, lines, self.leftovers, self.line_count, tight)


def blocks(text: bytes) -> Iterator[tuple[int, int]]:
    """Parts of the text, each of whole lines."""
    start = 0
    while start < len(text):
        stop = start + BLOCK_BYTES
        if stop < len(text):
            newline = text.rfind(b"\n", start, stop)
            newline = text.find(b"\n", stop) if newline < 0 else newline
            stop = newline + 1 if newline >= 0 else len(text)
        stop = min(stop, len(text))
        yield start, stop
        start = stop


def _split_block(text: bytes, start: int, stop: int, found: _Found) -> None:
    buffer = np.frombuffer(text, np.uint8)
    newlines = np.flatnonzero(buffer[start:stop] == NEWLINE) + start
    starts = np.concatenate(([start], newlines + 1))
    ends = np.concatenate((newlines, [stop]))
    if starts[-1] == stop:
        starts, ends = starts[:-1], ends[:-1]
    lines = np.arange(found.line_count + 1, found.line_count + 1 + len(starts))
    found.line_count += len(starts)
    filled = ends > starts
    if not filled.all():
        starts, ends, lines = starts[filled], ends[filled], lines[filled]
    if not len(starts):
        return
    ends = ends - (buffer[ends - 1] == RETURN)
    plain = (buffer[starts] == OPEN) & (buffer[ends - 1] == CLOSE) & (ends > starts)
    seams = _lines_with_seams(text, start, stop, starts)
    plain[seams] = False
    if plain.all():
        found.add(starts, ends, lines)
    else:
        _add_odd(text, (starts, ends, lines), plain, set(seams), found)


def _lines_with_seams(text: bytes, start: int, stop: int, starts: Any) -> list[int]:
    """The lines that contain `}{`, each once."""
    found: list[int] = []
    while seam := SEAM.search(text, start, stop):
        found.append(int(np.searchsorted(starts, seam.start(), "right")) - 1)
        newline = text.find(b"\n", seam.end(), stop)
        if newline < 0:
            break
        start = newline
    return found


def _add_odd(text: bytes, places: tuple[Any, Any, Any], plain: Any, seams: set[int], found: _Found) -> None:
    """Plain lines are records. Of the others, white space and commas at their borders belong to no record;
    the lines that are still not plain are examined one by one."""
    starts, ends, lines = places
    odd = np.flatnonzero(~plain)
    first, last, had_comma = _without_borders(text, starts[odd], ends[odd])
    found.tight = found.tight and not had_comma.any()
    buffer = np.frombuffer(text, np.uint8)
    filled = last > first
    odd, first, last, had_comma = odd[filled], first[filled], last[filled], had_comma[filled]
    has_text = _have_text(buffer, first, last)
    found.tight = found.tight and bool(has_text.all())
    odd, first, last, had_comma = odd[has_text], first[has_text], last[has_text], had_comma[has_text]
    is_record = (buffer[first] == OPEN) & (buffer[last - 1] == CLOSE) & ~had_comma & ~np.isin(odd, [*seams])
    taken = [
        (starts[plain], ends[plain], lines[plain]),
        (first[is_record], last[is_record], lines[odd[is_record]]),
    ]
    records: list[tuple[int, int, int]] = []
    rest = ~is_record
    for n, a, b in zip(odd[rest].tolist(), first[rest].tolist(), last[rest].tolist(), strict=True):
        line = int(lines[n])
        in_line, leftovers, tight = _in_line(text, a, b, found.limits)
        found.tight = found.tight and tight
        if isinstance(in_line, Structure):
            taken.append((in_line.starts + a, in_line.ends + a, np.full(len(in_line.starts), line)))
        else:
            records += [(x, y, line) for x, y in in_line]
        for x, y in leftovers:
            found.leave(x, y, line)
    taken.append(tuple(np.array(records, np.int64).reshape(-1, 3).T))  # type: ignore[arg-type]
    columns = [np.concatenate(parts) for parts in zip(*taken, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    found.add(*(column[order] for column in columns))


def _without_borders(text: bytes, starts: Any, ends: Any) -> tuple[Any, Any, Any]:
    """The places without white space around them and commas behind them; and which of them had commas."""
    buffer = np.frombuffer(text, np.uint8)
    starts, ends = starts.copy(), ends.copy()
    had_comma = np.zeros(len(starts), np.bool_)
    for _ in range(TRIMMED_AT_ONCE):
        at_start = (starts < ends) & _IS_WHITE[buffer[np.minimum(starts, len(buffer) - 1)]]
        last = buffer[ends - 1]
        at_end = (starts + at_start < ends) & _IS_WHITE_OR_COMMA[last]
        if not (at_start.any() or at_end.any()):
            break
        had_comma |= at_end & (last == COMMA)
        starts += at_start
        ends -= at_end
    return starts, ends, had_comma


def _have_text(buffer: Any, first: Any, last: Any) -> Any:
    """Whether lines have more than white space, commas and brackets of arrays. Those of a block that is one long line are
    taken to."""
    if not len(first) or last[-1] - first[0] > 2 * BLOCK_BYTES:
        return np.ones(len(first), np.bool_)
    is_text = np.append(_IS_TEXT[buffer[first[0] : last[-1]]], False)
    borders = np.stack((first, last), axis=1).ravel() - first[0]
    return np.logical_or.reduceat(is_text, borders)[::2]


Places = list[tuple[int, int]]


def _in_line(text: bytes, start: int, end: int, limits: Limits) -> tuple[Places | Structure, Places, bool]:
    """The records of one line, its other text, and whether only white space is between the records. A `Structure` is
    counted from the line's start."""
    place = trimmed(text, start, end)
    if place is None:
        return [], [], True
    begin, (start, end) = start, place
    begins = text.find(b"{", start, end)
    if begins != start and text[start] not in BETWEEN and (begins < 0 or text.find(b"}", begins, end) < 0):
        return [], [place], True
    line = text[start:end]
    decoded, torn_at = decoded_places(line)
    if decoded is not None:
        torn = [] if torn_at is None else [(start + torn_at, end)]
        return [(start + a, start + b) for a, b in decoded], torn, True
    if (walked := _walked(line)) is not None:
        return [(start + a, start + b) for a, b in walked[0]], [], walked[1]
    shape = structure_of(text[begin:end], limits)
    return shape, [(begin + a, begin + b) for a, b in shape.leftovers], shape.tight


def decoded_places(line: bytes) -> tuple[Places | None, int | None]:
    """The places of a short line's objects by Python's own decoder, which is quicker there than numpy. Also where the last
    one begins, if the line ends within it. None where it is more than objects one after the other. Read as Latin-1, a byte is
    a character, and places need no translation."""
    if len(line) > SHORT_BYTES:
        return None, None
    text, at = line.decode("latin-1"), 0
    places: Places = []
    try:
        while at < len(text):
            value, end = DECODER.raw_decode(text, at)
            if not isinstance(value, dict):
                return None, None
            places.append((at, end))
            at = BLANK.match(text, end).end()  # type: ignore[union-attr]
    except json.JSONDecodeError as error:
        torn = error.pos >= len(text) or error.msg.startswith("Unterminated string")
        return (places, at) if torn and text[at] == "{" else (None, None)
    except (ValueError, RecursionError):
        return None, None
    return places, None


def _walked(line: bytes) -> tuple[Places, bool] | None:
    """The same as its `structure_of`, which takes a hundred times as long for a short line: the places of its objects, and
    whether only white space is between them. None where it has other text, or arrays within arrays around objects."""
    if len(line) > SHORT_BYTES:
        return None
    text, places, is_open = line.decode("latin-1"), Places(), False
    at = len(BOM_UTF8) if line.startswith(BOM_UTF8) else 0
    tight = not at
    try:
        while at < len(text):
            end = _end_of(_BETWEEN, text, at)
            for bracket in re.findall(r"[\[\]]", text[at:end]):
                if is_open and bracket == "[":
                    return None
                is_open = bracket == "["
            tight = tight and _end_of(BLANK, text, at) == end
            if end < len(text):
                value, at = DECODER.raw_decode(text, end)
                if not isinstance(value, dict):
                    return None
                places.append((end, at))
            else:
                at = end
    except (ValueError, RecursionError):
        return None
    return places, tight


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def lines_of(text: bytes, positions: Any) -> Any:
    """On which lines these ascending positions are."""
    found = [np.zeros(0, np.int64)]
    first = 1
    for start in range(0, len(text) if len(positions) else 0, BLOCK_BYTES):  # a line may be as long as the text
        stop = min(start + BLOCK_BYTES, len(text))
        newlines = np.flatnonzero(np.frombuffer(text, np.uint8, stop - start, start) == NEWLINE) + start
        inside = positions[np.searchsorted(positions, start) : np.searchsorted(positions, stop)]
        found.append(np.searchsorted(newlines, inside) + first)
        first += len(newlines)
    return np.concatenate(found)
