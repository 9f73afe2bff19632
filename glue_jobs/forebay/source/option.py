"""One option, and the readers that parse texts into the values of options.

In: a user's text. Out: a reader returns its value, or raises ValueError; the option that uses the reader describes the allowed
values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, timedelta, timezone, tzinfo
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from forebay.address import is_s3
from forebay.errors import InvalidConfiguration
from forebay.notification import Filter


@dataclass(frozen=True)
class Option:
    """One declaration. `read` makes the value out of the text, or raises ValueError; `allowed` is for a person. `also` are
    names that other sources have for it. One without `effect` is only checked."""

    name: str
    type: str
    default: str
    allowed: str
    meaning: str
    read: Callable[[str], Any]
    also: tuple[str, ...] = ()
    effect: bool = True

    @property
    def field(self) -> str:
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.name).lower()


def number_between(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = int(text)
        if not least <= number <= most:
            raise ValueError(text)
        return number

    return read


_BYTES = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_MOST_BYTES = 1 << 40


def number_of_bytes(text: str) -> int:
    match = _BYTES.fullmatch(text)
    number = int(match[1]) << (10 * " kmgt".index(match[2].lower() or " ")) if match else 0
    if not 1 <= number <= _MOST_BYTES:
        raise ValueError(text)
    return number


_DURATION = re.compile(r"(\d+)\s*(?:(s|sec|secs|second|seconds)|(m|min|mins|minute|minutes))?", re.IGNORECASE)
_LONGEST_WAIT_S = 20


def wait_s(text: str) -> int:
    """Seconds, or a duration; SQS allows twenty seconds in one request."""
    found = _DURATION.fullmatch(text)
    if not found:
        raise ValueError(text)
    if found[2] or found[3]:
        return min(_LONGEST_WAIT_S, int(found[1]) * (60 if found[3] else 1))
    return number_between(0, _LONGEST_WAIT_S)(text)


def anything(text: str) -> str:
    return text


def name_of(text: str) -> str:
    if not text.isprintable():
        raise ValueError(text)
    return text


def one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(text)
        return text.lower()

    return read


def yes_or_no(text: str) -> bool:
    return one_of("true", "false")(text) == "true"


def url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(text)
    return text


def queue_url(text: str) -> str:
    if len(urlsplit(url(text)).path.strip("/")) == 0:
        raise ValueError(text)
    return text


def manifest_path(text: str) -> str:
    parts = urlsplit(text)
    in_s3 = is_s3(text) and parts.netloc
    local = parts.scheme in ("", "file") and not parts.netloc and parts.path.startswith("/") and parts.path.strip("/")
    if not in_s3 and not local:
        raise ValueError(text)
    return text.rstrip("/")


def url_or_nothing(text: str) -> str:
    return text and url(text)


def bucket_names(text: str) -> frozenset[str]:
    names = frozenset(name.strip() for name in text.split(",")) if text else frozenset()
    if not all(re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,253}", name, re.IGNORECASE) for name in names):
        raise ValueError(text)
    return names


def glob(text: str) -> str:
    try:
        Filter(glob=text)
    except InvalidConfiguration as problem:
        raise ValueError(text) from problem
    return text


def time_zone(text: str) -> tzinfo:
    """A zone by its name, or by its distance from UTC, such as `+02:00`."""
    if text in ("Z", "UTC", "GMT"):
        return UTC
    offset = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?", text)
    if offset is None:
        return _named_zone(text)
    hours, minutes = int(offset[2]), int(offset[3] or 0)
    if minutes > 59 or hours * 60 + minutes > 18 * 60:
        raise ValueError(text)
    away = timedelta(hours=hours, minutes=minutes)
    return timezone(away if offset[1] == "+" else -away)


def _named_zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (KeyError, OSError) as problem:  # no such name, or the name of a folder of zones
        raise ValueError(name) from problem
