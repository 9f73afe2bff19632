"""A glob over whole keys, matched in time that grows with the key's length, whatever the glob and the key.

`*` and `?` stay within one folder, `**` crosses folders, and `**/` may match no folder at all; `[abc]`, `[a-z]` and `[!abc]`
are one character, `{json,csv}` is either. `[*]` is a plain star. A glob that does not close its brackets is
`InvalidConfiguration` when it is made.

A regular expression would try every way to divide a key among the stars, for seconds or hours. This matcher follows all
possible positions in the glob at once, and caches the step for each character.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from forebay.errors import InvalidConfiguration

Fits = Callable[[str], bool]
Places = frozenset[int]

MOST_REMEMBERED = 10_000

_PIECE = re.compile(
    r"(?P<folders>(?:^|(?<=/))\*\*/)|(?P<any>\*\*+)|(?P<name>\*)|(?P<char>\?)"
    r"|\[(?P<other>[!^]?+)(?P<set>\][^\]]*|[^\]]+)\]|(?P<open>\{)|(?P<close>\})|(?P<comma>,)|(?P<plain>.)",
    re.DOTALL,
)


class Glob:
    """One glob, ready to be asked."""

    def __init__(self, glob: str) -> None:
        self._ways = _Parser(glob).ways()
        self._first = self._ways.reachable({0})
        self._known: dict[tuple[Places, str], Places] = {}

    def fits(self, key: str) -> bool:
        places = self._first
        for character in key:
            places = self._after(places, character)
        return self._ways.last in places

    def _after(self, places: Places, character: str) -> Places:
        known = self._known.get((places, character))
        if known is None:
            known = self._ways.reachable({to for at in places for fits, to in self._ways.steps[at] if fits(character)})
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[places, character] = known
        return known


@dataclass(slots=True)
class _Ways:
    """From each place of the glob: which characters lead where, and which places are reached without one."""

    steps: list[list[tuple[Fits, int]]] = field(default_factory=lambda: [[]])
    free: list[list[int]] = field(default_factory=lambda: [[]])
    last: int = 0

    def place(self) -> int:
        self.steps.append([])
        self.free.append([])
        return len(self.steps) - 1

    def reachable(self, places: set[int]) -> Places:
        reached, waiting = set(places), list(places)
        while waiting:
            for to in self.free[waiting.pop()]:
                if to not in reached:
                    reached.add(to)
                    waiting.append(to)
        return frozenset(reached)


class _Parser:
    """Lays the ways of one glob, piece by piece."""

    def __init__(self, glob: str) -> None:
        self._glob, self._made, self._at = glob, _Ways(), 0
        self._open: list[tuple[int, int]] = []  # where each `{` begins, and where it ends

    def ways(self) -> _Ways:
        for piece in _PIECE.finditer(self._glob):
            self._lay(piece)
        if self._open:
            raise _invalid(self._glob, "a '{' is not closed")
        self._made.last = self._at
        return self._made

    def _lay(self, piece: re.Match[str]) -> None:
        kind = piece.lastgroup or "plain"
        if (kind == "close" and not self._open) or (kind == "plain" and piece[0] == "["):
            raise _invalid(self._glob, f"the {piece[0]!r} at character {piece.start() + 1} has no counterpart")
        if kind == "folders":
            self._folders()
        elif kind in ("any", "name"):
            self._star(_any if kind == "any" else _not_slash)
        elif kind == "open":
            self._open.append((self._at, self._made.place()))
            self._branch(self._at)
        elif kind == "close" or (kind == "comma" and self._open):
            self._end_branch(closes=kind == "close")
        else:
            self._one(self._fits(kind, piece))

    def _fits(self, kind: str, piece: re.Match[str]) -> Fits:
        if kind == "char":
            return _not_slash
        if kind == "set":
            one = _one_of(self._glob, piece["set"], other=bool(piece["other"]))
            return lambda character: one.fullmatch(character) is not None
        return piece[0].__eq__

    def _one(self, fits: Fits) -> None:
        to = self._made.place()
        self._made.steps[self._at].append((fits, to))
        self._at = to

    def _star(self, fits: Fits) -> None:
        self._branch(self._at)
        self._made.steps[self._at].append((fits, self._at))

    def _folders(self) -> None:
        before, after = self._at, self._made.place()
        self._star(_any)
        self._made.steps[self._at].append(("/".__eq__, after))
        self._made.free[before].append(after)
        self._at = after

    def _branch(self, start: int) -> None:
        to = self._made.place()
        self._made.free[start].append(to)
        self._at = to

    def _end_branch(self, *, closes: bool) -> None:
        start, end = self._open[-1]
        self._made.free[self._at].append(end)
        if closes:
            self._open.pop()
            self._at = end
        else:
            self._branch(start)


def _any(character: str) -> bool:
    return True


def _not_slash(character: str) -> bool:
    return character != "/"


def _one_of(glob: str, characters: str, *, other: bool) -> re.Pattern[str]:
    spans = re.sub(
        r"(.)-(.)|.",
        lambda span: f"{re.escape(span[1])}-{re.escape(span[2])}" if span[1] else re.escape(span[0]),
        characters,
        flags=re.DOTALL,
    )
    try:
        return re.compile(f"(?!/)[{'^' if other else ''}{spans}]", re.DOTALL)
    except re.error as problem:  # a range that runs backwards
        raise _invalid(glob, str(problem)) from problem


def _invalid(glob: str, what: str) -> InvalidConfiguration:
    return InvalidConfiguration.one("glob", f"{glob!r}: {what}", "to match a bracket itself, write [[] or [{]")
