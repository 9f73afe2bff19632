"""Which files land, in which order, with which records: decided before anything is put, and the same every time."""

from __future__ import annotations

import gzip
import hashlib
import heapq
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from forebay_local.feed.tally import Tally
from forebay_local.feed.telemetry import SPOILED, Telemetry, game_names, mistyped, of_unknown_game, without_game

HOUR_MS = 3_600_000
RECENT_MS = 300_000
SOURCES = (*(f"edge-{n:02d}" for n in range(1, 13)), "kiosk 4+west", "büro-1")
GATEWAY = "gateway"


@dataclass(frozen=True)
class Mix:
    """The shares of odd records and files. A record is at most one of the first six."""

    unreadable: float = 0.006
    mistyped: float = 0.002
    gameless: float = 0.004
    unknown: float = 0.003
    late: float = 0.02
    empty_lines: float = 0.003
    gz_files: float = 0.7
    mixed_files: float = 0.05
    files_without_last_newline: float = 0.2
    files_put_twice: float = 0.03

    def __post_init__(self) -> None:
        of_records = (self.unreadable, self.mistyped, self.gameless, self.unknown, self.late, self.empty_lines)
        if min(of_records) < 0 or sum(of_records) > 1:
            raise ValueError("the shares of the records must not be negative, and not be more than all of them")


SPAN = timedelta(hours=2)
"""A feed that begins this long ago ends now: nothing in it is of the future."""


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a plan. `files` are the different ones: those put twice come on top of them.

    `start` is when the first file lands; they land over `span`. Another seed or start gives other keys, so that a later
    feed never writes over a file that an earlier one left to be read.
    """

    start: datetime
    files: int = 200
    games: int = 8
    mean_records: int = 250
    seed: int = 1
    span: timedelta = SPAN
    prefix: str = "in/"
    mix: Mix = field(default_factory=Mix)

    def __post_init__(self) -> None:
        if self.start.tzinfo is None:
            raise ValueError("start must carry its time zone")
        if self.files < 0 or self.games < 1 or self.mean_records < 1:
            raise ValueError("files must not be negative, games and mean_records must be at least 1")


@dataclass(frozen=True)
class DroppedFile:
    """One put of one file. `repeated`: the same bytes under the same key were put before."""

    key: str
    body: bytes
    tally: Tally
    repeated: bool = False


def plan(recipe: Recipe) -> Iterator[DroppedFile]:
    """The files in the order of their landing; the second put of a file comes up to 20 files after its first."""
    chance = random.Random(f"{recipe.seed} {recipe.start.isoformat()}")
    telemetry = Telemetry(chance)
    repeats: list[tuple[int, int, DroppedFile]] = []
    for number, outline in enumerate(_outlines(chance, recipe)):
        file = _file(chance, telemetry, recipe, outline)
        yield file
        if chance.random() < recipe.mix.files_put_twice:
            again = DroppedFile(file.key, file.body, file.tally, repeated=True)
            heapq.heappush(repeats, (number + chance.randint(0, 20), number, again))
        while repeats and repeats[0][0] <= number:
            yield heapq.heappop(repeats)[2]
    while repeats:
        yield heapq.heappop(repeats)[2]


# --- which files ---


@dataclass(frozen=True)
class _Outline:
    """A file before its records: `folder` is the game's, or the gateway's where the file carries several games."""

    folder: str
    games: tuple[str, ...]
    number: int
    records: int
    landed: datetime


def _outlines(chance: random.Random, recipe: Recipe) -> Iterator[_Outline]:
    games = game_names(recipe.games)
    owners = _owners(chance, games, recipe.files)
    # The files of a big game are bigger, too; scaled so that all together have what the recipe says.
    sizes = [chance.lognormvariate(0, 0.6) / (games.index(owner) + 1) ** 0.3 for owner in owners]
    scale = recipe.files * recipe.mean_records / sum(sizes) if sizes else 0
    for number, (owner, size) in enumerate(zip(owners, sizes, strict=True)):
        mixed = len(games) > 1 and chance.random() < recipe.mix.mixed_files
        landed = recipe.start + recipe.span * number / recipe.files
        folder, of_games = (GATEWAY, games) if mixed else (owner, (owner,))
        yield _Outline(folder, of_games, number, max(1, round(size * scale)), landed)


def _owners(chance: random.Random, games: Sequence[str], files: int) -> list[str]:
    """The game of each file: each has one as far as they go, the first has most."""
    weights = [1 / (rank + 1) for rank in range(len(games))]
    owners = [*games[:files], *chance.choices(games, weights, k=max(0, files - len(games)))]
    chance.shuffle(owners)
    return owners


# --- a file's content ---


def _file(chance: random.Random, telemetry: Telemetry, recipe: Recipe, outline: _Outline) -> DroppedFile:
    lines, tally = _records(chance, telemetry, recipe.mix, outline)
    text = "\n".join(lines) + ("" if chance.random() < recipe.mix.files_without_last_newline else "\n")
    body = text.encode("utf-8", "surrogateescape")
    packed = chance.random() < recipe.mix.gz_files
    if packed:
        body = gzip.compress(body, compresslevel=1, mtime=0)
    return DroppedFile(_key(chance, recipe, outline, ".json.gz" if packed else ".json"), body, tally)


def _key(chance: random.Random, recipe: Recipe, outline: _Outline, suffix: str) -> str:
    feed = hashlib.blake2b(f"{recipe.seed} {recipe.start.isoformat()}".encode(), digest_size=4).hexdigest()
    hour = outline.landed.strftime("%Y/%m/%d/%H")
    return f"{recipe.prefix}{outline.folder}/{hour}/{chance.choice(SOURCES)}-{feed}-{outline.number:06d}{suffix}"


def _records(chance: random.Random, telemetry: Telemetry, mix: Mix, outline: _Outline) -> tuple[list[str], Tally]:
    fates = _fates(chance, mix, outline.records)
    clean, games = telemetry.lines(outline.games, _moments(chance, outline, fates))
    if not any(fates):
        return clean, Tally(clean=dict(sorted(Counter(games).items())))
    lines: list[str] = []
    sums: Counter[str] = Counter()
    good: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for line, game, fate in zip(clean, games, fates, strict=True):
        match fate:
            case "" | "late":
                good[game] += 1
                lines.append(line)
            case "empty":
                good[game] += 1
                lines += ["", line]
            case "mistyped":
                wrong[game] += 1
                lines.append(mistyped(line, chance))
            case "unknown":
                lines.append(of_unknown_game(line, chance))
            case "gameless":
                lines.append(without_game(line, chance))
            case _:
                spoiled = chance.choice(SPOILED)(line, chance)
                sums["unreadable"] += len(spoiled)
                lines += spoiled
        sums[fate] += fate in ("late", "unknown", "gameless")
    tally = Tally(good, wrong, sums["unknown"], sums["gameless"], sums["unreadable"], sums["late"])
    return lines, tally + Tally()  # which puts the games in order


def _fates(chance: random.Random, mix: Mix, count: int) -> list[str]:
    """The fault of each record; mostly none. The first has none, so that the file looks like JSON lines."""
    shares = {
        "unreadable": mix.unreadable,
        "mistyped": mix.mistyped,
        "gameless": mix.gameless,
        "unknown": mix.unknown,
        "late": mix.late,
        "empty": mix.empty_lines,
    }
    rest = 1 - sum(shares.values())
    return ["", *chance.choices(["", *shares], [rest, *shares.values()], k=count - 1)]


def _moments(chance: random.Random, outline: _Outline, fates: Sequence[str]) -> list[int]:
    """When each record happened, in ms: in the five minutes before its file landed, or hours or days before."""
    landed_ms = int(outline.landed.timestamp() * 1000)
    any_of = chance.random
    return [landed_ms - (_late_ms(chance) if fate == "late" else int(RECENT_MS * any_of())) for fate in fates]


def _late_ms(chance: random.Random) -> int:
    if chance.random() < 0.7:
        return chance.randint(HOUR_MS, 23 * HOUR_MS)
    return chance.randint(24 * HOUR_MS, 9 * 24 * HOUR_MS)
