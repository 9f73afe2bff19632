"""Whether a field's text fits its declared column, in plain Python: what `batch.columns` has Spark decide.

In: a field's text, and the declaration of its column. Out: yes or no. What does not fit is rescued. Patterns of `formats` are
Spark's; one that is more than numbers, such as `MMM`, is taken to fit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation

from forebay.declaration.column import Column
from forebay.record.number import is_exact

__all__ = ["fits"]

WHOLE = re.compile(r"[+-]?[0-9]+")
FRACTION = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
NOT_FINITE = re.compile(r"[+-]?inf(inity)?|nan", re.IGNORECASE)
OFFSET = r"(?: ?(Z|z|UTC|GMT)|([+-])(\d\d)(?::?(\d\d))?)?"
EXTENDED = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d)(?::(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?" + OFFSET + ")?", re.ASCII
)
BASIC = re.compile(r"(\d{4})(\d\d)(\d\d)[Tt](\d\d)(?:(\d\d)(?:(\d\d)(?:[.,](\d+))?)?)?" + OFFSET, re.ASCII)
"""The texts that `Moment`, in Java, takes for times."""
LONGEST_TIME = 64
PLACES = {"s": 0, "ms": 3, "us": 6, "ns": 9}
FIRST, AFTER = Decimal(-62135596800), Decimal(253402300800)
"""Seconds since 1970, of the years 1 to 9999."""
YES_OR_NO = frozenset({"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"})
BITS = {"int": 31, "long": 63}
LETTERS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "%f"}


def fits(text: str, column: Column) -> bool:
    if column.type.startswith("decimal"):
        return _is_decimal(text.strip(), column.type)
    asks = KINDS.get(column.type)
    return asks is None or asks(text, column)


def _is_whole(text: str, column: Column) -> bool:
    text = text.strip()
    most = 1 << BITS[column.type]
    return WHOLE.fullmatch(text) is not None and len(text) < 30 and -most <= int(text) < most


def _is_fraction(text: str, _: Column) -> bool:
    text = text.strip()
    return NOT_FINITE.fullmatch(text) is not None or (FRACTION.fullmatch(text) is not None and is_exact(text))


def _is_decimal(text: str, kind: str) -> bool:
    """Nothing is rounded."""
    digits, scale = map(int, re.findall(r"\d+", kind))
    try:
        number = Decimal(text) if FRACTION.fullmatch(text) else None
        return number is not None and abs(number) < 10 ** (digits - scale) and number == round(number, scale)
    except InvalidOperation:
        return False


def _is_moment(text: str, column: Column) -> bool:
    if column.formats:
        return any(_is_of_format(text, pattern) for pattern in column.formats)
    return _is_written_moment(text.strip()) or (column.unit is not None and _counts(text.strip(), PLACES[column.unit]))


def _is_written_moment(text: str) -> bool:
    found = (EXTENDED.fullmatch(text) or BASIC.fullmatch(text)) if len(text) <= LONGEST_TIME else None
    if found is None:
        return False
    parts = [int(found[n] or 0) for n in range(1, 7)]
    sign, hours, minutes = found[9], int(found[10] or 0), int(found[11] or 0)
    if hours * 60 + minutes > 18 * 60 or minutes > 59:
        return False
    try:
        _ = datetime(*parts) - timedelta(minutes=(hours * 60 + minutes) * (-1 if sign == "-" else 1))  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        return False
    return True


def _counts(text: str, places: int) -> bool:
    try:
        return FRACTION.fullmatch(text) is not None and FIRST <= Decimal(text).scaleb(-places) < AFTER
    except InvalidOperation:
        return False


def _is_of_format(text: str, pattern: str) -> bool:
    parts = re.findall(r"'[^']*'|([A-Za-z])(\1*)|[^A-Za-z']+", pattern)
    letters = ["".join(part) for part in parts if part[0]]
    if any(letter not in LETTERS for letter in letters):
        return True
    said = re.sub(r"'([^']*)'|([A-Za-z])\2*", lambda m: m[1] if m[2] is None else LETTERS[m[0]], pattern)
    try:
        datetime.strptime(text, said)
    except ValueError:
        return False
    return True


def _is_object(text: str, _: Column) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _is_yes_or_no(text: str, _: Column) -> bool:
    return text.strip().lower() in YES_OR_NO


KINDS: dict[str, Callable[[str, Column], bool]] = {
    **dict.fromkeys(("int", "long"), _is_whole),
    **dict.fromkeys(("double", "float"), _is_fraction),
    **dict.fromkeys(("timestamp", "date"), _is_moment),
    "boolean": _is_yes_or_no,
    "map": _is_object,
}
