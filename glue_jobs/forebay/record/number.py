"""Reads and writes JSON with the original digits of each number: Python's own parser converts fractions to a double.

In: JSON text. Out: Python values, where a number that Python would change is `Written`. Or JSON text again, in which every
number has its original digits. JSON lacks NaN and infinity: they are written as texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import numpy as np

from forebay.record.name import TwinValue

NOT_JSON = ("NaN", "Infinity", "-Infinity")
NEGATIVE_ZERO = "-0"
MOST_DIGITS = 4000
"""The most digits of an integer that Python reads as one; its own limit is a little higher."""
EXACT_DIGITS = 15
"""The digits that every double holds."""
WIDE = Context(prec=3 * MOST_DIGITS)
"""Rounds none of the numbers that `decimal_of` returns."""
BLANK = "".join(map(chr, range(33)))
"""Characters that may surround a value: those that Java trims. Other kinds of spaces do not count."""
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Written(float):
    """A number, and how it was written."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Written:
        made = super().__new__(cls, text)
        made.text = text
        return made

    @property
    def is_whole(self) -> bool:
        """Whether a column of whole numbers takes it."""
        return self.text == NEGATIVE_ZERO

    def __reduce__(self) -> tuple[type[Written], tuple[str]]:
        return Written, (self.text,)


def is_exact(text: str, *, single: bool = False) -> bool:
    """Whether a double, or a float where it is `single`, gives this number back: in the fewest digits that tell it apart, or
    in all that it has."""
    if text in NOT_JSON or (not single and len(text) <= EXACT_DIGITS and "e" not in text.lower()):
        return True
    held = float(text)
    shortest = repr(held)
    if single:
        with np.errstate(over="ignore"):
            held, shortest = float(np.float32(held)), str(np.float32(held))
    if shortest == text:
        return True
    try:
        return Decimal(text) in (Decimal(shortest), Decimal(held))
    except InvalidOperation:  # an exponent that no Decimal has
        return False


def decimal_of(text: str) -> Decimal | None:
    """The number that a text is, with all its digits; None where it is none, or longer than any column holds."""
    plain = text.strip(BLANK)
    if len(plain) > MOST_DIGITS or NUMBER.fullmatch(plain) is None:
        return None
    try:
        number = Decimal(plain)
    except InvalidOperation:  # an exponent that no Decimal has
        return None
    return number if abs(int(number.as_tuple().exponent)) <= MOST_DIGITS else None


def read_json(text: str, **more: Any) -> Any:
    """Raises `ValueError`, also for what is nested deeper than Python follows."""
    if NEGATIVE_ZERO in text or len(text) > MOST_DIGITS:
        more["parse_int"] = _whole
    try:
        if not more:
            return _DECODER.decode(text)
        return json.loads(text, parse_float=Written, parse_constant=Written, **more)
    except RecursionError as deep:
        raise ValueError("it is nested too deep to be read") from deep


def no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object that has a key twice is not one value, and to take either would lose the other."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key is twice in one object")
    return made


def problem_of(text: str) -> str | None:
    """Why a text is not one JSON document, in the words of `batch.reasons`; None where it is one."""
    try:
        read_json(text)
    except ValueError:
        return "several-documents" if _are_documents(text) else "not-json"
    return None


def _are_documents(text: str) -> bool:
    """Whether several values stand one after the other, perhaps with a comma between two."""
    at = 0
    while at < len(text):
        try:
            _, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return False
        at = _BLANK.match(text, at).end()  # type: ignore[union-attr]
    return True


_BLANK = re.compile(r"[ \t\n\r]*,?[ \t\n\r]*")
_DECODER = json.JSONDecoder(parse_float=Written, parse_constant=Written)


def _whole(digits: str) -> int | Written:
    """Python's `int` has no minus before a zero, and refuses thousands of digits."""
    return Written(digits) if digits == NEGATIVE_ZERO or len(digits) > MOST_DIGITS else int(digits)


class _Token(str):
    """Finished JSON among values that are still to be written."""

    __slots__ = ()


_COMMA, _OPENS, _CLOSES, _OPENS_LIST, _CLOSES_LIST = map(_Token, ",{}[]")
_ASCII_TEXT, _TEXT = json.JSONEncoder().encode, json.JSONEncoder(ensure_ascii=False).encode


def write_json(value: Any, *, ascii_only: bool = True, sort: bool = False, bare: bool = False) -> str:
    """Compact, and however deep the value is nested. `sort` puts the keys of objects in order, so that the same value is the
    same text; `bare` leaves NaN and infinity as Python writes them, for `read_json`."""
    written: list[str] = []
    ahead = [value]
    text_of = _ASCII_TEXT if ascii_only else _TEXT
    while ahead:
        of = ahead.pop()
        kind = type(of)
        if kind is _Token:
            written.append(of)
        elif kind is dict:
            ahead += reversed(_members(of, text_of, sort=sort))
        elif kind is list:
            ahead += reversed([_OPENS_LIST, *_between_commas(of), _CLOSES_LIST])
        elif kind is TwinValue:
            ahead.append(of.value)
        else:
            text = of.text if kind is Written else text_of(of)
            written.append(text_of(text) if text in NOT_JSON and not bare else str(text))
    return "".join(written)


def _members(of: dict[str, Any], text_of: Callable[[str], str], *, sort: bool) -> list[Any]:
    items = sorted(of.items()) if sort else of.items()
    found: list[Any] = [_OPENS]
    for key, inner in items:
        found += (_Token(text_of(key) + ":"), inner, _COMMA)
    return [*(found[:-1] if of else found), _CLOSES]


def _between_commas(values: list[Any]) -> list[Any]:
    found = [_COMMA] * (2 * len(values) - 1)
    found[::2] = values
    return found
