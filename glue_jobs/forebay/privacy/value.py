"""The treatment of one personal value. A treated value stays unchanged, so a kept record can be treated twice.

In: the JSON text of a value that is neither an object nor an array. Out: JSON text. Null stays null: it is not personal.
"""

from __future__ import annotations

import json
import re
from ipaddress import IPv6Address

from forebay.declaration.personal import Become
from forebay.privacy.token import remembered_token

MASK = "***"
IPV6_NETWORK, TEREDO_NETWORK = 0xFFFFFFFFFFFF << 80, 0xFFFFFFFF << 96
"""The first 48 bits, and the first 32: behind those a Teredo address has parts of an IPv4 address."""
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
IPV4 = re.compile(rf"((?:{_OCTET}\.){{3}}){_OCTET}")
_DECODER = json.JSONDecoder(strict=False)
YEAR = re.compile(r"(?:1[89]|2[01])[0-9]{2}")
"""A year in which a living person may have been born, or later. Other numbers of four digits may be anything, such as a
PIN."""
_MONTH, _DAY = "(?:0[1-9]|1[0-2])", "(?:0[1-9]|[12][0-9]|3[01])"
DATE = re.compile(rf"([0-9]{{4}})-{_MONTH}-{_DAY}(?:[T ].*)?", re.DOTALL)
MONTH = re.compile(rf"({YEAR.pattern})-{_MONTH}")


def treated_value(text: str, become: Become, secret: bytes = b"") -> str:
    """`secret` is for tokens. A number and the text of it have the same one."""
    if text == "null":
        return text
    if become == "masked":
        return f'"{MASK}"'
    value = text
    if text.startswith('"'):
        value = text[1:-1] if "\\" not in text else _DECODER.decode(text)
    kept = remembered_token(value, secret) if become == "token" else _truncated(value)
    return text if kept == value else f'"{kept}"'


def _truncated(value: str) -> str:
    """A date is the first one of its year, so it still fits a column of dates."""
    if found := IPV4.fullmatch(value):
        return f"{found[1]}0"
    if YEAR.fullmatch(value):
        return value
    if found := DATE.fullmatch(value) or MONTH.fullmatch(value):
        return f"{found[1]}-01-01"
    try:
        address = IPv6Address(value)
    except ValueError:
        return MASK
    if (inner := address.ipv4_mapped or address.sixtofour) is not None:
        return _truncated(str(inner))
    network = IPV6_NETWORK if address.teredo is None else TEREDO_NETWORK
    return str(IPv6Address(int(address) & network))
