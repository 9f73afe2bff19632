"""Finds a declaration: the file, the line and the name that a person looks for.

In: the text of a file, and a section that was parsed from it. Out: texts such as `service.toml:14: table purchases: column
price: type`. Editors can open such a line. The line is left out if the text does not show it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from forebay.refusal import Location

HEADER = re.compile(r"""^\s*(\[\[?)\s*([A-Za-z0-9_."'{}\- ]+?)\s*\]\]?\s*(#.*)?$""")


@dataclass(frozen=True)
class Text:
    """A file's text, by its name. Lines count from 1."""

    file: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without the content of multi-line strings."""
        shown, inside = [], ""
        for line in self.text.splitlines():
            marks = re.findall(r'"""|\'\'\'', line)
            shown.append("" if inside else line)
            for mark in marks:
                inside = "" if inside == mark else inside or mark
        return shown

    @cached_property
    def headers(self) -> list[tuple[int, str]]:
        """The line and the name of each `[section]` and `[[section]]`."""
        found = ((number, HEADER.match(line)) for number, line in enumerate(self.lines, 1))
        return [(number, header[2]) for number, header in found if header]

    @property
    def all_lines(self) -> tuple[int, int]:
        return (1, len(self.lines))

    def lines_of(self, name: str) -> tuple[int, int]:
        """The lines of the section `[name]`; those before any section if there is none."""
        begin = next((number for number, header in self.headers if header == name), 0)
        return begin or 1, next((number - 1 for number, _ in self.headers if number > begin), len(self.lines))

    def lists(self, name: str) -> list[int]:
        """The lines of `[[name]]`."""
        return [number for number, header in self.headers if header == name and "[[" in self.lines[number - 1]]


@dataclass(frozen=True)
class Section:
    """One table, one rollup, or the service itself. `lines` are its first and its last, where they are known. The headers
    within it begin with `prefix`."""

    text: Text
    kind: str
    number: int
    given: Any
    lines: tuple[int, int] | None
    prefix: str = ""

    @property
    def label(self) -> str:
        """None of the service itself."""
        name = self.given.get("name") if isinstance(self.given, dict) else None
        return f"{self.kind} {name}" if isinstance(name, str) else f"{self.kind} number {self.number + 1}"

    def at(self, location: Location = (), message: str = "") -> str:
        """The place of one setting in it. A message may begin with the name of another setting."""
        named = re.match(r"([a-z_]+)[:. ]", message) if not location else None
        line = self._line_of(location or ((named[1],) if named else ()))
        file = f"{self.text.file}:{line}" if line else self.text.file
        parts = [file, *([self.label] if self.kind else []), *self._path(location)]
        return ": ".join(parts)

    def is_opened(self, name: str) -> bool:
        """Whether it has a header of its own, such as [tables.where], so that all lines after it belong to it."""
        return any(header == self.prefix + name for _, header in self._headers)

    @property
    def _headers(self) -> list[tuple[int, str]]:
        first, last = self.lines or (1, 0)
        return [(number, header) for number, header in self.text.headers if first <= number <= last]

    def _path(self, location: Location) -> list[str]:
        if location[:1] == ("columns",) and len(location) > 1 and isinstance(self.given, dict):
            column = self.given["columns"][location[1]] if isinstance(location[1], int) else None
            name = column.get("name") if isinstance(column, dict) else None
            if isinstance(name, str):
                rest = ".".join(map(str, location[2:]))
                return [f"column {name}", *([rest] if rest else [])]
        return [".".join(map(str, location))] if location else []

    def _line_of(self, location: Location) -> int | None:
        """The line of its deepest part that the text shows."""
        if self.lines is None or not (self.kind or location):
            return None
        first, last = self.lines if self.kind else self.text.lines_of(str(location[0]))
        line = first if self.kind else None
        begin, given = first, self.given
        for step in location:
            given = _inside(given, step)
            wanted = _shown(step, given)
            if wanted is None:
                continue
            found = next((n for n in range(begin, last + 1) if wanted.search(self.text.lines[n - 1])), None)
            if found is None:
                break
            line = begin = found
        return line


def sections_of(text: Text, name: str, given: list[Any]) -> list[Section]:
    """The sections `[[name]]` of a file, in their order."""
    kind = name.removesuffix("s")
    begin = text.lists(name)
    if len(begin) != len(given):
        return [Section(text, kind, at, one, None) for at, one in enumerate(given)]
    others = [number for number, header in text.headers if not header.startswith(f"{name}.")]
    ends = [next((o - 1 for o in others if o > line), len(text.lines)) for line in begin]
    return [
        Section(text, kind, at, one, lines, f"{name}.")
        for at, (one, lines) in enumerate(zip(given, zip(begin, ends, strict=True), strict=True))
    ]


def _inside(given: Any, step: int | str) -> Any:
    try:
        return given[step]
    except (KeyError, IndexError, TypeError):
        return None


def _shown(step: int | str, given: Any) -> re.Pattern[str] | None:
    """The expected text of a line with this step: its key, or the name of the list's element."""
    if isinstance(step, str):
        key = rf"""["']?{re.escape(step)}["']?"""
        return re.compile(rf"(^|[{{,\s]){key}\s*=|^\s*\[+\s*([^\]]*\.)?{key}\s*(\]|\.)")
    name = given.get("name") if isinstance(given, dict) else given
    return re.compile(rf"""["']{re.escape(name)}["']""") if isinstance(name, str) else None
