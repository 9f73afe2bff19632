"""What a personal value becomes. What became of it once becomes the same again, so a kept record can be treated twice.

In: the JSON text of a value that is no object and no array. Out: JSON text. Null stays null: it says nothing of a person.
"""

from __future__ import annotations

import json
import re
from ipaddress import IPv6Address

from forebay.declaration.personal import Become
from forebay.privacy.token import remembered_token

__all__ = ["MASK", "treated_value"]

MASK = "***"
IPV6_NETWORK = 0xFFFFFFFFFFFF << 80
"""The first 48 bits."""
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
IPV4 = re.compile(rf"((?:{_OCTET}\.){{3}}){_OCTET}")
_DECODER = json.JSONDecoder(strict=False)
YEAR = re.compile(r"[0-9]{4}")
DATE = re.compile(r"([0-9]{4})-[0-9]{2}(-[0-9]{2}([T ].*)?)?", re.DOTALL)


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
    if found := DATE.fullmatch(value):
        return f"{found[1]}-01-01"
    try:
        address = IPv6Address(value)
    except ValueError:
        return MASK
    mapped = address.ipv4_mapped
    return str(IPv6Address(int(address) & IPV6_NETWORK)) if mapped is None else _truncated(str(mapped))
