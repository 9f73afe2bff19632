"""Guesses the kind of personal data that a value looks like, for a person to judge. Treated values match none.

In: a value of a row. Out: the kind of personal data that it may be, or None.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Any, Literal, get_args

from forebay.privacy.token import PREFIX, SIGNS
from forebay.privacy.value import treated_value

Kind = Literal["e-mail address", "IP address", "card number", "phone number", "long id"]
KINDS: tuple[str, ...] = get_args(Kind)

LONGEST = 200
"""Longer texts are prose or data, which may name people in many ways."""
EMAIL = re.compile(r"[^@\s<>\"']+@[^@\s<>\"']+\.[A-Za-z]{2,}")
CARD = re.compile(r"[3-6][0-9]{3}(?:[ -]?[0-9]){9,15}")
PHONE = re.compile(r"\+[1-9][0-9 ()./-]{6,18}[0-9]|\(?0[0-9]{1,5}[) /-]+[0-9][0-9 /-]{4,14}[0-9]")
HEX_ID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[0-9A-Fa-f]{16,128}")
ID = re.compile(rf"{HEX_ID.pattern}|(?=[^0-9]*[0-9])[A-Za-z0-9_-]{{20,128}}")

TOKEN = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{{SIGNS}}}")


def kind_of(value: Any) -> Kind | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    text = str(value).strip()
    if not text or len(text) > LONGEST or TOKEN.fullmatch(text):
        return None
    if EMAIL.search(text):
        return "e-mail address"
    if _is_address(text):
        return "IP address"
    if CARD.fullmatch(text) and _adds_up(re.sub("[^0-9]", "", text)):
        return "card number"
    if isinstance(value, str) and PHONE.fullmatch(text):
        return "phone number"
    return "long id" if isinstance(value, str) and ID.fullmatch(text) else None


def is_no_name(text: str) -> bool:
    """Whether this is a value of a person, and not the name of a field."""
    kind = kind_of(text)
    return kind is not None and (kind != "long id" or HEX_ID.fullmatch(text.strip()) is not None)


def _is_address(text: str) -> bool:
    """And not a network that an address was truncated to."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return treated_value(f'"{text}"', "truncated") != f'"{text}"'


def _adds_up(digits: str) -> bool:
    """Whether Luhn's check digit is right, which nine of ten other numbers fail."""
    doubled = (int(digit) * (1 + at % 2) for at, digit in enumerate(reversed(digits)))
    return sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0
