"""Tokens: stand-ins for personal values. Equal values have the same token, and nobody can compute the value from it.

In: a value as text, and a secret. Out: its token. A token of this secret is recognised by its check, and stays unchanged; a
value that only looks like one does not. Texts that a numeric column reads as the same number are one value. The secret would
allow somebody to try values, so it is kept apart (`secret`).
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64encode

from forebay.remembered import remembered

PREFIX = "tok_"
BODY_BYTES, CHECK_BYTES = 18, 6
"""The bytes of HMAC-SHA256 that are kept: among a billion values, the chance that two have the same token is one in 10^25."""
BLANK = "".join(map(chr, (*range(33), 127)))
"""Characters that columns of numbers ignore around a number."""
NUMBER = re.compile(r"([+-]?)(?:([0-9]++)\.?([0-9]*+)|\.([0-9]++))(?:[eE]([+-]?[0-9]{1,18}))?")
MOST_ZEROS = 40
"""At the end of a whole number that is written without an exponent."""
BODY_SIGNS, SIGNS = BODY_BYTES * 4 // 3, (BODY_BYTES + CHECK_BYTES) * 4 // 3


def token_of(value: str, secret: bytes) -> str:
    if value.startswith(PREFIX) and _is_token(value.removeprefix(PREFIX), secret):
        return value
    body = _signed(b"value", one_spelling(value), secret, BODY_BYTES)
    return PREFIX + body + _signed(b"check", body, secret, CHECK_BYTES)


def looks_like_token(text: str) -> bool:
    """Whether it may be a token of some secret."""
    return re.fullmatch(rf"{PREFIX}[A-Za-z0-9_-]{{{SIGNS}}}", text) is not None


def one_spelling(value: str) -> str:
    """A number in one of its spellings: `4711`, `4711.0`, `047.11e2` and ` +4711` are `4711`. Any other text is itself."""
    found = NUMBER.fullmatch(value.strip(BLANK))
    if found is None:
        return value
    sign, whole, fraction, alone, power = found.groups(default="")
    digits = (whole + fraction + alone).lstrip("0")
    if not digits:
        return "0"
    kept = digits.rstrip("0")
    exponent = int(power or 0) - len(fraction + alone) + len(digits) - len(kept)
    shown = kept + "0" * exponent if 0 <= exponent <= MOST_ZEROS else f"{kept}e{exponent}"
    return f"-{shown}" if sign == "-" else shown


@remembered
def remembered_token(value: str, secret: bytes) -> str:
    return token_of(value, secret)


def _is_token(signs: str, secret: bytes) -> bool:
    if len(signs) != SIGNS or not signs.isascii():
        return False
    return hmac.compare_digest(_signed(b"check", signs[:BODY_SIGNS], secret, CHECK_BYTES), signs[BODY_SIGNS:])


def _signed(use: bytes, text: str, secret: bytes, length: int) -> str:
    """Half of a pair of surrogates is a value as any other."""
    made = hmac.digest(secret, use + b"\0" + text.encode("utf-8", "surrogatepass"), "sha256")
    return urlsafe_b64encode(made[:length]).decode()
