"""Records of games, as text: sessions, level-ups, purchases, ad views and crashes, and ways to spoil them.

Everything comes from the `random.Random` that is passed in, so it can be repeated. A million records are written in some
seconds: expensive parts (nested objects) are written once, into pools, and a line is put together from ready pieces.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

EVENTS = {"ad_view": 36, "level_up": 20, "session_start": 16, "session_end": 15, "purchase": 8, "crash": 5}
"""The events, and how often each occurs in a hundred."""

NAMES = (
    *("rustlantern", "pixelfarm", "tidebound", "voxelkart", "mothlight", "gravelgolf", "starbarista", "frostharbor"),
    *(
        "cardinalclash",
        "inkrunner",
        "beetlebrigade",
        "moonorchard",
        "quillquest",
        "tramtycoon",
        "duskdivers",
        "papercastle",
    ),
)
COUNTRIES = ("DE", "US", "BR", "JP", "PL", "IN", "FR", "KR", "MX", "TR", "SE", "VN")
MODELS = (
    ("ios", "18.1", "iPhone16,2"),
    ("ios", "17.6.1", "iPhone14,7"),
    ("ios", "18.0", "iPad14,3"),
    ("android", "15", "Pixel 9"),
    ("android", "14", "SM-S921B"),
    ("android", "13", "Redmi Note 13 Pro+"),
    ("windows", "11", 'Desktop "Studio"'),
    ("linux", "6.12", "Deck"),
)
POOL = 200
PLAYERS = 50_000


def game_names(count: int) -> tuple[str, ...]:
    """`count` names of games; the first is the biggest game."""
    return tuple(
        NAMES[at] if at < len(NAMES) else f"{NAMES[at % len(NAMES)]}{at // len(NAMES) + 1}" for at in range(count)
    )


@dataclass(frozen=True)
class _Session:
    """One player's time with one game: the pieces of a line that stay the same in it."""

    opening: str
    middle: str


class Telemetry:
    """Writes clean records of some games."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._minutes: dict[int, str] = {}
        self._devices = [_device(chance) for _ in range(POOL)]
        self._tails = {event: [_tail(event, chance) for _ in range(POOL)] for event in EVENTS}

    def lines(self, games: Sequence[str], happened_ms: Sequence[int]) -> tuple[list[str], list[str]]:
        """One record for each moment, each of one of these games; and which game each is of."""
        count, chance = len(happened_ms), self._chance
        sessions = [(game, self._session(game)) for game in chance.choices(games, k=count // 8 + 1)]
        chosen = chance.choices(sessions, k=count)
        events = chance.choices(list(EVENTS), list(EVENTS.values()), k=count)
        ids = [_uuid(text) for text in _cut(chance.randbytes(16 * count).hex(), 32)]
        lines = [
            f'{session.opening}{event}","event_id":"{event_id}","event_time":"{self._instant(ms)}{session.middle}'
            f"{self._tails[event][ms % POOL]}"
            for (_, session), event, event_id, ms in zip(chosen, events, ids, happened_ms, strict=True)
        ]
        return lines, [game for game, _ in chosen]

    def _session(self, game: str) -> _Session:
        player = int(PLAYERS * self._chance.random())
        session = self._chance.randbytes(12).hex()
        about = {
            "id": f"p-{player:06d}",
            "country": COUNTRIES[player % len(COUNTRIES)],
            "level": 1 + player * 7919 % 60,
        }
        return _Session(
            opening=f'{{"game":"{game}","event":"',
            middle=f'","player_id":"{about["id"]}","session_id":"s-{session}",'
            f'"device":{self._devices[player % POOL]},"player":{_json(about)},',
        )

    def _instant(self, ms: int) -> str:
        minute, rest = divmod(ms, 60_000)
        text = self._minutes.get(minute)
        if text is None:
            text = self._minutes[minute] = datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%dT%H:%M:")
        return f"{text}{rest // 1000:02d}.{rest % 1000:03d}Z"


def _cut(text: str, length: int) -> Iterator[str]:
    return (text[at : at + length] for at in range(0, len(text), length))


def _uuid(text: str) -> str:
    """A random one, of version 4."""
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


def _device(chance: random.Random) -> str:
    system, version, model = chance.choice(MODELS)
    screen = {"width": chance.choice((1080, 1170, 1290, 1920)), "height": chance.choice((1920, 2400, 2532))}
    locale = chance.choice(("de_DE", "en_US", "pt_BR", "ja_JP"))
    return _json({"os": system, "os_version": version, "model": model, "locale": locale, "screen": screen})


def _tail(event: str, chance: random.Random) -> str:
    """The end of a line: the fields of its event, and the items that changed hands."""
    tail = {
        "app_version": f"{chance.randint(1, 4)}.{chance.randint(0, 30)}.{chance.randint(0, 9)}",
        **_particulars(event, chance),
        "items": [_item(chance) for _ in range(_item_count(event, chance))],
    }
    return _json(tail)[1:]


def _particulars(event: str, chance: random.Random) -> dict[str, Any]:
    match event:
        case "session_end":
            return {"session": {"length_s": chance.randint(20, 7200), "screens": chance.randint(1, 60)}}
        case "level_up":
            return {"level_up": {"reached": chance.randint(2, 60), "attempts": chance.randint(1, 12)}}
        case "purchase":
            receipt = {"store": chance.choice(("appstore", "play", "steam")), "order": chance.randbytes(6).hex()}
            return {"purchase": {"receipt": receipt, "email": f"player{chance.randint(1, 99_999)}@example.com"}}
        case "ad_view":
            return {"ad": {"network": chance.choice(("northads", "gleam")), "rewarded": chance.random() < 0.6}}
        case "crash":
            frames = [{"function": f"fn_{chance.randint(1, 99)}", "line": chance.randint(1, 999)} for _ in range(3)]
            message = chance.choice(("out of memory", "Übergabe fehlgeschlagen", 'asset "ruins/01" not found'))
            return {"crash": {"message": message, "stack": frames}}
    return {}


def _item_count(event: str, chance: random.Random) -> int:
    return {"purchase": chance.randint(1, 3), "level_up": chance.randint(0, 2)}.get(event, 0)


def _item(chance: random.Random) -> dict[str, Any]:
    price = {"amount": chance.choice((0.99, 1.99, 4.99, 19.99)), "currency": chance.choice(("EUR", "USD", "BRL"))}
    sku = chance.choice(("gem_pack", "skin_moss", "extra_life", "season_pass"))
    return {"sku": sku, "quantity": chance.randint(1, 5), "price": price}


# --- spoiling a clean record ---


def _cut_off(line: str, chance: random.Random) -> list[str]:
    return [line[: chance.randint(1, len(line) - 1)]]


def _garbled(line: str, chance: random.Random) -> list[str]:
    noise = bytes(chance.randint(0x80, 0xFF) for _ in range(24)) + b"\xff"
    return [noise.decode("utf-8", "surrogateescape")]


def _page(line: str, chance: random.Random) -> list[str]:
    title = chance.choice(("502 Bad Gateway", "503 Service Unavailable"))
    return ["<html>", f"<head><title>{title}</title></head>", f"<body><h1>{title}</h1></body>", "</html>"]


def _constant(text: str) -> Callable[[str, random.Random], list[str]]:
    return lambda line, chance: [text]


SPOILED: tuple[Callable[[str, random.Random], list[str]], ...] = (
    *(_cut_off, _cut_off, _garbled, _page),
    *map(_constant, ("connection reset by peer", "42", "null", "[7]", '"maintenance"')),
)
"""Replacements of lines that are not JSON objects; a page of HTML is several lines, and so several records."""


def mistyped(line: str, chance: random.Random) -> str:
    """The same record with one field, never `game`, of the wrong type."""
    record = json.loads(line)
    match chance.randrange(5):
        case 0:
            record["event_time"] = chance.randint(1, 2**40)
        case 1:
            record["player"] = record["player"]["id"]
        case 2:
            record["player"]["level"] = "seventeen"
        case 3:
            record["items"] = {"sku": "gem_pack"}
        case _:
            record["device"] = [record["device"]]
    return _json(record)


def of_unknown_game(line: str, chance: random.Random) -> str:
    name = chance.choice(("prototype7", "internal_test", "ghostgame"))
    return f'{{"game":"{name}",{_without_game(line)}'


def without_game(line: str, chance: random.Random) -> str:
    return chance.choice(("{", '{"game":null,')) + _without_game(line)


def _without_game(line: str) -> str:
    return line[line.index(",") + 1 :]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
