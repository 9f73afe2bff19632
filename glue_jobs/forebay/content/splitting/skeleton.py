"""The brackets and commas that give a text its outer shape: those outside of strings and not within a record.

In: bytes that may be JSON. Out: a `Skeleton`. It accepts any bytes, checks no grammar, never recurses and builds no objects:
nesting of any depth is only a number. Numpy reads the text a chunk at a time, so it needs little memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from forebay.content.outcome import TooMany

CHUNK_BYTES = 1 << 20
QUOTE, BACKSLASH, NEWLINE = 0x22, 0x5C, 0x0A
ARRAY, OPENING, CLOSING, COMMA = (ord(c) for c in "[{},")

_STEP = np.zeros(256, np.int32)
_STEP[[ord("{"), ord("[")]] = 1
_STEP[[ord("}"), ord("]")]] = -1


@dataclass(frozen=True, slots=True)
class Skeleton:
    """Each bracket or comma that is outermost, or an outermost array's own: its place, its kind, and how many brackets are
    open around it (0 or 1). `deepest` counts all levels; `open_at_end` those never closed. `torn_string`: a newline stands
    within quotes, which no JSON has; so a quote is missing, and brackets after it may not be what they seem."""

    position: Any
    symbol: Any
    level: Any
    deepest: int
    open_at_end: int
    in_string_at_end: bool
    torn_string: bool

    @property
    def complete(self) -> bool:
        return self.open_at_end == 0 and not self.in_string_at_end and not self.torn_string

    @property
    def even(self) -> bool:
        """Whether each bracket has its partner."""
        steps = _STEP[self.symbol[self.level == 0]]
        return self.complete and not steps.sum()

    @property
    def open_array(self) -> int | None:
        """Where the outermost array begins that is still open at the end."""
        opening = np.flatnonzero((self.level == 0) & (_STEP[self.symbol] == 1))
        if not self.open_at_end or not len(opening) or self.symbol[opening[-1]] != ARRAY:
            return None
        return int(self.position[opening[-1]])

    def part(self, start: int, stop: int) -> Skeleton:
        """The skeleton of an outermost value that begins and ends there."""
        some = slice(*np.searchsorted(self.position, (start, stop)).tolist())
        return replace(self, position=self.position[some], symbol=self.symbol[some], level=self.level[some])


def skeleton(text: bytes, start: int = 0, stop: int | None = None, *, most: int | None = None) -> Skeleton:
    """The shape of the text, or of a part of it. A closing bracket that nothing opened counts as one at level 0 and changes no
    depth. Raises `TooMany` where it has more than `most` brackets and commas."""
    stop = len(text) if stop is None else stop
    scan, buffer = _Scan(), np.frombuffer(text, np.uint8)
    for at in range(start, stop, CHUNK_BYTES):
        scan.take(buffer[at : min(at + CHUNK_BYTES, stop)], at)
        if most is not None and scan.count > most:
            raise TooMany("too-many-records", f"more than {most} brackets and commas around and between records")
    return scan.skeleton()


def depth_beyond(text: bytes, most: int) -> int:
    """The depth of the text if it is greater than `most`, else 0. A text with few brackets is not deep."""
    deepest = skeleton(text).deepest if text.count(b"{") + text.count(b"[") > most else 0
    return deepest if deepest > most else 0


@dataclass(slots=True)
class _Scan:
    """The state that passes from one chunk to the next."""

    depth: int = 0
    in_string: bool = False
    torn_string: bool = False
    escaped: bool = False  # the next byte follows a backslash that escapes it
    deepest: int = 0
    outermost: int = 0  # the last bracket that opened at level 0
    count: int = 0
    found: list[tuple[Any, Any, Any]] = field(default_factory=list)

    def take(self, chunk: Any, at: int) -> None:
        curled = chunk | 0x20  # [ becomes {, and ] becomes }; nothing else does
        position = np.flatnonzero((curled == OPENING) | (curled == CLOSING) | (chunk == COMMA) | (chunk == QUOTE))
        symbol = chunk[position]
        is_quote = symbol == QUOTE
        if self.escaped or (chunk == BACKSLASH).any():
            is_quote &= ~self._escaped(chunk)[position]
        quotes = np.cumsum(is_quote) + self.in_string
        outside = (quotes & 1 == 0) & (symbol != QUOTE)
        self.torn_string = self.torn_string or self._has_newline_in_string(chunk, position[is_quote])
        if len(quotes):
            self.in_string = bool(quotes[-1] & 1)
        self._keep(position[outside] + at, symbol[outside])

    def _has_newline_in_string(self, chunk: Any, quotes: Any) -> bool:
        newlines = np.flatnonzero(chunk == NEWLINE)
        return len(newlines) > 0 and bool(((np.searchsorted(quotes, newlines) + self.in_string) & 1).any())

    def _keep(self, position: Any, symbol: Any) -> None:
        if not len(position):
            return
        step = _STEP[symbol]
        after = self.depth + np.cumsum(step)
        after -= np.minimum(np.minimum.accumulate(after), 0)
        self.depth, self.deepest = int(after[-1]), max(self.deepest, int(after.max()))
        level = after - (step == 1)
        outer = level <= 1
        self._keep_outer(position[outer], symbol[outer], (step[outer] == 1), level[outer].astype(np.int8))

    def _keep_outer(self, position: Any, symbol: Any, opens: Any, level: Any) -> None:
        """Keeps the outer brackets and commas; at level 1 only the objects in an array."""
        if not len(position):
            return
        opener = np.maximum.accumulate(np.where((level == 0) & opens, np.arange(len(symbol)), -1))
        around = np.where(opener >= 0, symbol[opener], self.outermost)
        self.outermost = int(around[-1])
        kept = (level == 0) | (around == ARRAY)
        self.found.append((position[kept], symbol[kept], level[kept]))
        self.count += int(kept.sum())

    def _escaped(self, chunk: Any) -> Any:
        """Which bytes a backslash escapes: those after a run of backslashes of odd length."""
        escaped = np.zeros(len(chunk) + 1, np.bool_)
        slashes = np.flatnonzero(chunk == BACKSLASH)
        if self.escaped:
            escaped[0] = True
            slashes = slashes[1:] if len(slashes) and slashes[0] == 0 else slashes
        if len(slashes):
            first = np.flatnonzero(np.diff(slashes, prepend=-2) != 1)
            length = np.diff(first, append=len(slashes))
            escaped[(slashes[first] + length)[length & 1 == 1]] = True
        self.escaped = bool(escaped[-1])
        return escaped[:-1]

    def skeleton(self) -> Skeleton:
        columns = zip(*self.found, strict=True) if self.found else ([np.zeros(0, np.int64)],) * 3
        position, symbol, level = (np.concatenate(list(column)) for column in columns)
        return Skeleton(position, symbol, level, self.deepest, self.depth, self.in_string, self.torn_string)
