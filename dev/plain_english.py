"""Lists phrases that native readers stumble over. `make check` fails where a file has one.

    python dev/plain_english.py README.md docs     # each place, and what to write instead

In: `plain_english.toml`, and this repository's documents and code. Out: one line for each match.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SUFFIXES = {".md", ".py", ".toml", ".java"}
LEFT_OUT = {"tests", "node_modules", "dist", "cdk.out", "build"}
GENERATED = ("docs", "reference")
"""From texts that are counted where they are written."""
ITSELF = HERE / "plain_english.toml"


@cache
def phrases() -> list[tuple[re.Pattern[str], str]]:
    listed = tomllib.loads((HERE / "plain_english.toml").read_text())
    return [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in listed.items()]


def files(places: list[Path]) -> Iterator[Path]:
    for place in places:
        for file in sorted([place] if place.is_file() else place.rglob("*")):
            inside = file.relative_to(ROOT).parts
            hidden = any(part.startswith(".") or part in LEFT_OUT for part in inside) or inside[:2] == GENERATED
            if file.is_file() and file.suffix in SUFFIXES and not hidden and file != ITSELF:
                yield file


def places_in(file: Path) -> Iterator[tuple[int, str, str]]:
    """The line, the phrase, and what to write instead."""
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
        yield from ((number, phrase, instead) for phrase, instead in phrases_in(line))


@cache
def phrases_in(line: str) -> list[tuple[str, str]]:
    """Many lines of code are the same."""
    return [(found[0].strip(), instead) for pattern, instead in phrases() for found in pattern.finditer(line)]


def counts() -> dict[str, int]:
    """The number of phrases in each file that has some."""
    found = {str(file.relative_to(ROOT)): len(list(places_in(file))) for file in files([ROOT])}
    return {name: count for name, count in found.items() if count}


def main(arguments: list[str]) -> None:
    for file in files([Path(argument).resolve() for argument in arguments] or [ROOT]):
        for number, phrase, instead in places_in(file):
            print(f"{file.relative_to(ROOT)}:{number}: {phrase!r} -> {instead}")


if __name__ == "__main__":
    main(sys.argv[1:])
