"""Lists phrases that native readers stumble over, and keeps their number from growing.

    python dev/plain_english.py README.md docs     # each place, and what to write instead
    python dev/plain_english.py --lower            # after a rewrite: put lower counts into the baseline

In: `plain_english.toml`, and the documents and the code of this repository. Out: a line for each place. The baseline says how
many a file had when the list was made. A file may have fewer, and never more; a file that it does not name may have none.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BASELINE = HERE / "plain_english_baseline.toml"
SUFFIXES = {".md", ".py", ".toml", ".java"}
LEFT_OUT = {"tests", "node_modules", "dist", "cdk.out", "build"}
GENERATED = ("docs", "reference")
"""From texts that are counted where they are written."""
ITSELF = {HERE / "plain_english.toml", BASELINE}


def phrases() -> list[tuple[re.Pattern[str], str]]:
    listed = tomllib.loads((HERE / "plain_english.toml").read_text())
    return [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in listed.items()]


def files(places: list[Path]) -> Iterator[Path]:
    for place in places:
        for file in sorted([place] if place.is_file() else place.rglob("*")):
            inside = file.relative_to(ROOT).parts
            hidden = any(part.startswith(".") or part in LEFT_OUT for part in inside) or inside[:2] == GENERATED
            if file.is_file() and file.suffix in SUFFIXES and not hidden and file not in ITSELF:
                yield file


def places_in(file: Path) -> Iterator[tuple[int, str, str]]:
    """The line, the phrase, and what to write instead."""
    known = phrases()
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
        for pattern, instead in known:
            yield from ((number, found[0].strip(), instead) for found in pattern.finditer(line))


def counts() -> dict[str, int]:
    """Of every file that has some."""
    found = {str(file.relative_to(ROOT)): len(list(places_in(file))) for file in files([ROOT])}
    return {name: count for name, count in found.items() if count}


def baseline() -> dict[str, int]:
    return tomllib.loads(BASELINE.read_text()) if BASELINE.exists() else {}


def grown() -> dict[str, tuple[int, int]]:
    """Files with more phrases than the baseline allows: how many it has, and how many it may have."""
    allowed = baseline()
    return {name: (count, allowed.get(name, 0)) for name, count in counts().items() if count > allowed.get(name, 0)}


def lower() -> None:
    """A count in the baseline only goes down. The first run makes the baseline."""
    now, before = counts(), baseline()
    kept = now if not before else {name: min(now.get(name, 0), count) for name, count in before.items()}
    text = "".join(f'"{name}" = {count}\n' for name, count in sorted(kept.items()) if count)
    BASELINE.write_text(
        f"# How many phrases of plain_english.toml each file may have. The numbers only go down.\n{text}"
    )


def main(arguments: list[str]) -> None:
    if "--lower" in arguments:
        lower()
        return
    for file in files([Path(argument).resolve() for argument in arguments] or [ROOT]):
        for number, phrase, instead in places_in(file):
            print(f"{file.relative_to(ROOT)}:{number}: {phrase!r} -> {instead}")


if __name__ == "__main__":
    main(sys.argv[1:])
