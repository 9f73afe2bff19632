"""The records of a text by its brackets alone, whatever its layout: concatenated, printed over many lines, in an array.

In: UTF-8 bytes. Out: `Structure`: the places of objects that are outermost, or elements of an outermost array. Also the text
between them, without white space, commas and the brackets of arrays. So every byte of text is in one of the two. It is
lenient: a missing or repeated comma, an array that does not close, or a byte order mark between joined files loses no record.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from forebay.content.limits import Limits
from forebay.content.splitting.skeleton import Skeleton, skeleton

WHITE = b" \t\r\n"
BETWEEN = WHITE + b",[]"
OBJECT, OBJECT_END, COMMA = (ord(c) for c in "{},")
BORDERS_OF_A_RECORD = 4
"""Its brackets, a comma, and one for text that is not a record."""

_IS_SEPARATOR = np.zeros(256, np.bool_)
_IS_SEPARATOR[list(WHITE + b",")] = True


@dataclass(frozen=True, slots=True)
class Structure:
    """Records and leftovers as places in the text, ascending. `tight`: nothing but white space lies between records."""

    starts: Any
    ends: Any
    leftovers: list[tuple[int, int]]
    tight: bool
    complete: bool


def structure_of(text: bytes, limits: Limits | None = None) -> Structure:
    """Where the records are, in a text that is not empty. Raises `TooMany`, if limits say how many may be."""
    return structure_in(text, 0, len(text), outline_of(text, limits))


def outline_of(text: bytes, limits: Limits | None = None) -> Skeleton:
    """Raises `TooMany`, if limits say how many records may be."""
    return skeleton(text, most=None if limits is None else BORDERS_OF_A_RECORD * limits.max_records)


def structure_in(text: bytes, start: int, stop: int, outline: Skeleton) -> Structure:
    """The records of a part of a text whose outline is known."""
    position, symbol, level = outline.position, outline.symbol, outline.level
    opening = np.flatnonzero(symbol == OBJECT)
    closed = opening[opening + 1 < len(position)]
    after = closed + 1  # of an object, nothing between its two brackets is of interest
    closed = closed[(symbol[after] == OBJECT_END) & (level[after] == level[closed])]
    starts, ends = position[closed], position[closed + 1] + 1
    separators = position[((level == 0) & (symbol != OBJECT) & (symbol != OBJECT_END)) | (symbol == COMMA)]
    leftovers, tight = _leftovers(text, np.append(start, ends), np.append(starts, stop), separators)
    return Structure(starts, ends, leftovers, tight and not len(separators), outline.complete)


def _leftovers(text: bytes, begin: Any, end: Any, separators: Any) -> tuple[list[tuple[int, int]], bool]:
    """The texts in the gaps between the records. Nearly every gap is empty, or a byte or two; only the others are examined."""
    buffer = np.frombuffer(text, np.uint8)
    first, second = (_IS_SEPARATOR[buffer[np.minimum(begin + n, len(buffer) - 1)]] for n in (0, 1))
    length = end - begin
    unclear = np.flatnonzero((length > 2) | ((length > 0) & ~first) | ((length == 2) & ~second))
    found: list[tuple[int, int]] = []
    tight = True
    for a, b in zip(begin[unclear].tolist(), end[unclear].tolist(), strict=True):
        tight = tight and not text[a:b].strip(WHITE)
        if not tight and text[a:b].strip(BETWEEN):
            inner = separators[np.searchsorted(separators, a) : np.searchsorted(separators, b)].tolist()
            cuts = [a - 1, *inner, b]
            found += filter(None, (trimmed(text, x + 1, y) for x, y in pairwise(cuts)))
    return [place for place in found if text[slice(*place)] != BOM_UTF8], tight


def trimmed(text: bytes, start: int, end: int) -> tuple[int, int] | None:
    """The place without the white space at its borders; None where nothing is left."""
    part = text[start:end]
    start += len(part) - len(part.lstrip(WHITE))
    end = start + len(part.strip(WHITE))
    return (start, end) if end > start else None
