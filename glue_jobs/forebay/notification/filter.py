"""Which files are wanted: a list of buckets, a prefix, a suffix and a glob, all of which must agree.

A glob speaks of the whole key. `*` and `?` stay within one folder, `**` crosses folders, and a `**/` may stand for no
folder at all; `[abc]`, `[a-z]` and `[!abc]` are one character, `{json,csv}` is either. `[*]` is a plain star. A glob
that does not close its brackets is `Misdeclared` when the filter is made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from forebay.errors import Misdeclared
from forebay.landed_file import LandedFile
from forebay.notification.outcome import Ignored

__all__ = ["EVERYTHING", "Filter"]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which files are wanted; what is empty does not restrict."""

    buckets: frozenset[str] = frozenset()
    prefix: str = ""
    suffix: str = ""
    glob: str = ""

    def __post_init__(self) -> None:
        if self.glob:
            _pattern(self.glob)

    def refuses(self, file: LandedFile) -> Ignored | None:
        """Why this file is not wanted; None for one that is."""
        if self.buckets and file.bucket not in self.buckets:
            return Ignored("bucket-not-allowed", file.uri)
        if file.key.startswith(self.prefix) and file.key.endswith(self.suffix) and self._globs(file.key):
            return None
        return Ignored("filtered", file.uri)

    def _globs(self, key: str) -> bool:
        return not self.glob or _pattern(self.glob).fullmatch(key) is not None


EVERYTHING = Filter()


@lru_cache(maxsize=64)
def _pattern(glob: str) -> re.Pattern[str]:
    try:
        return re.compile(_as_regex(glob), re.DOTALL)
    except re.error as problem:  # a range that runs backwards
        raise _misdeclared(glob, str(problem)) from problem


_PIECE = re.compile(
    r"(?P<folders>(?:^|(?<=/))\*\*/)|(?P<any>\*\*+)|(?P<name>\*)|(?P<char>\?)"
    r"|\[(?P<other>[!^]?+)(?P<set>\][^\]]*|[^\]]+)\]|(?P<open>\{)|(?P<close>\})|(?P<comma>,)|(?P<plain>.)",
    re.DOTALL,
)
_SIMPLE = {"folders": "(?:.*/)?", "any": ".*", "name": "[^/]*", "char": "[^/]"}


def _as_regex(glob: str) -> str:
    regex: list[str] = []
    open_braces = 0
    for piece in _PIECE.finditer(glob):
        kind = piece.lastgroup or "plain"
        open_braces += (kind == "open") - (kind == "close")
        if open_braces < 0 or (kind == "plain" and piece[0] == "["):
            raise _misdeclared(glob, f"the {piece[0]!r} at character {piece.start() + 1} has no partner")
        if kind in _SIMPLE:
            regex.append(_SIMPLE[kind])
        elif kind == "set":
            regex.append(_one_of(piece["set"], other=bool(piece["other"])))
        elif open_braces and kind in ("open", "comma"):
            regex.append("(?:" if kind == "open" else "|")
        else:
            regex.append(")" if kind == "close" else re.escape(piece[0]))
    if open_braces:
        raise _misdeclared(glob, "a '{' is not closed")
    return "".join(regex)


def _one_of(characters: str, *, other: bool) -> str:
    spans = re.sub(
        r"(.)-(.)|.",
        lambda span: f"{re.escape(span[1])}-{re.escape(span[2])}" if span[1] else re.escape(span[0]),
        characters,
        flags=re.DOTALL,
    )
    return f"(?!/)[{'^' if other else ''}{spans}]"


def _misdeclared(glob: str, what: str) -> Misdeclared:
    return Misdeclared.one("glob", f"{glob!r}: {what}", "a plain bracket is written [[] or [{]")
