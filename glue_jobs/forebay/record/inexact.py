"""Finds numbers that Arrow's JSON parser would change silently: a double cannot represent them, or they are an integer -0.

In: records as one Arrow array of text. Out: the positions of those with such a number. All texts are searched at once, from
each dot and exponent outward. Numbers inside strings count too, which is harmless: a record is walked unnecessarily.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.record.number import EXACT_DIGITS, NEGATIVE_ZERO, is_exact
from forebay.texts import borders_of, bytes_of, pieces

LONGEST = 32
"""A number of more characters counts as inexact. It might have zeros at its end, but nobody writes those."""
BLOCK_BYTES = 1 << 19
"""The text that is searched at a time: its derived arrays stay in the processor's cache."""
MARGIN = np.zeros(LONGEST + 2, np.uint8)
DOT, MINUS, ZERO = b".-0"
BEFORE_A_NUMBER = np.isin(np.arange(256), list(b":[, \t\r\n"))
BEFORE_ITS_DIGITS = BEFORE_A_NUMBER | np.isin(np.arange(256), list(b"0123456789"))
"""In a longer number, more digits come before those that were found. A digit before a minus is part of a text: many ids have
one."""


def inexact_in(texts: pa.StringArray) -> list[int]:
    offsets, text = borders_of(texts), bytes_of(texts)
    each = max(1, len(texts) * BLOCK_BYTES // max(1, int(offsets[-1] - offsets[0])))
    blocks = (offsets[at : at + each + 1] for at in range(0, len(texts), each))
    found = [_inexact_among(text[block[0] : block[-1]], block - block[0]) for block in blocks]
    return [at + n * each for n, some in enumerate(found) for at in some]


def _inexact_among(text: Any, offsets: Any) -> list[int]:
    places = _Numbers(text).inexact() - len(MARGIN)
    found: list[int] = np.unique(np.searchsorted(offsets, places, "right") - 1).tolist()
    return found


class _Numbers:
    """The numbers of many records, one after the other. A record ends with a bracket, so no number crosses into the next."""

    def __init__(self, text: Any) -> None:
        self.text = np.concatenate((MARGIN, text, MARGIN))
        self.is_digit = self.text - ZERO < 10
        self.is_exponent = self.text | 0x20 == ord("e")
        self.digits = np.lib.stride_tricks.sliding_window_view(self.is_digit, LONGEST)

    def inexact(self) -> Any:
        """Where they begin."""
        starts, ends = np.concatenate((self._fractions(), self._powers(), self._negative_zeros()), axis=1)
        is_negative = self.text[starts - 1] == MINUS
        starts = starts - is_negative
        before = self.text[starts - 1]
        begins = np.where(is_negative, BEFORE_A_NUMBER[before], BEFORE_ITS_DIGITS[before])
        starts, ends = starts[begins], ends[begins]
        long = ends - starts > LONGEST
        return np.concatenate((starts[long], self._changed(starts[~long], ends[~long])))

    def _fractions(self) -> Any:
        """Fractions with more digits than any double holds, so at least eight before or after the dot."""
        dots = np.flatnonzero(self.text == DOT)
        dots = dots[self.is_digit[dots - 8] | self.is_digit[dots + 8]]
        dots = dots[self.is_digit[dots - 1] & self.is_digit[dots + 1]]
        starts, ends = dots - self._digits_before(dots), dots + 1 + self._digits_from(dots + 1)
        long = (ends - starts - 1 > EXACT_DIGITS) & ~self.is_exponent[ends]
        return np.stack((starts[long], ends[long]))

    def _powers(self) -> Any:
        signs = np.flatnonzero(self.is_exponent[1:] & self.is_digit[:-1]) + 1
        first = signs + 1 + np.isin(self.text[signs + 1], list(b"+-"))
        signs, first = signs[self.is_digit[first]], first[self.is_digit[first]]
        starts = signs - self._digits_before(signs)
        fraction = (self.text[starts - 1] == DOT) & self.is_digit[starts - 2]
        starts = np.where(fraction, starts - 1 - self._digits_before(starts - 1), starts)
        return np.stack((starts, first + self._digits_from(first)))

    def _negative_zeros(self) -> Any:
        zeros = np.flatnonzero((self.text[:-1] == MINUS) & (self.text[1:] == ZERO)) + 1
        behind = zeros + 1
        zeros = zeros[~(self.is_digit[behind] | self.is_exponent[behind] | (self.text[behind] == DOT))]
        return np.stack((zeros, zeros + 1))

    def _digits_before(self, places: Any) -> Any:
        return _count(self.digits[places - LONGEST][:, ::-1])

    def _digits_from(self, places: Any) -> Any:
        return _count(self.digits[places])

    def _changed(self, starts: Any, ends: Any) -> Any:
        """Where those begin that are not what Arrow makes of them."""
        order = np.argsort(starts)
        starts, ends = starts[order], ends[order]
        numbers = pieces(self.text, starts, ends)
        same = pc.equal(numbers, pc.cast(pc.cast(numbers, pa.float64()), pa.string()))
        suspects = np.flatnonzero(~np.asarray(same) | np.asarray(pc.equal(numbers, NEGATIVE_ZERO)))
        odd = [at for at in suspects.tolist() if not _is_kept(numbers[at].as_py())]
        return starts[odd]


def _count(digits: Any) -> Any:
    """Up to the first that is none. One is there, so none at the first place means that all are."""
    counts = digits.argmin(axis=1)
    counts[counts == 0] = LONGEST
    return counts


def _is_kept(number: str) -> bool:
    return number != NEGATIVE_ZERO and is_exact(number)
