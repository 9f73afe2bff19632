"""The path of a field, wherever a declaration names one.

In: text such as `player.id`, `$.player.id`, `items[0].sku`, `"a.b".c` or `@key.game`. Out: a frozen
`Path`. A mistake is a ValueError that shows the place with a caret. The grammar:

    path  = [ "@key." | "@metadata." | "$." ] step { "." step | "[" digits "]" } | "@key" | "@file" | "@bucket" | "@feed"
    step  = text without . " [ ] { }, and without a space at either end
          | text in double quotes, with \\" for a quote and \\\\ for a backslash

`$.` is JSONPath's name for the record, and has no effect here. The other prefixes name fields of the object; all other fields
are the record's. `@key` alone is the object's whole key, `@file` the last part of it, `@feed` the name of the feed that it
belongs to. A record's own key `@key` is written `"@key"`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from forebay.declaration import object_key

Origin = Literal["record", "key", "metadata", "object"]

PREFIXES: dict[str, Origin] = {object_key.PREFIX: "key", object_key.METADATA_PREFIX: "metadata"}
OF_OBJECT = ("@key", "@file", "@bucket", "@feed")
"""Fields that describe the whole object; their origin is `object`."""
RESERVED = tuple({*OF_OBJECT, *(prefix.removesuffix(".") for prefix in PREFIXES)})
OBJECT_NAME = {"key": re.compile(r"[A-Za-z_]\w*"), "metadata": re.compile(object_key.METADATA_NAME)}

BARE = re.compile(r'[^."\[\]{}\x00-\x1f]+')
ROOT = re.compile(r"\$(?=[.\[]|$)")
QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"')
POSITION = re.compile(r"\[(\d{1,9})\]")


@dataclass(frozen=True)
class Path:
    """A text step is an object's key; a number is a position in an array, from 0."""

    origin: Origin
    steps: tuple[str | int, ...]

    @property
    def of_record(self) -> bool:
        return self.origin == "record"

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The keys before the first position; all steps where it has none."""
        first = next((at for at, step in enumerate(self.steps) if isinstance(step, int)), len(self.steps))
        return tuple(map(str, self.steps[:first]))

    @property
    def has_position(self) -> bool:
        return len(self.keys) < len(self.steps)

    def __str__(self) -> str:
        if self.origin == "object":
            return f"@{self.steps[0]}"
        prefix = next((prefix for prefix, origin in PREFIXES.items() if origin == self.origin), "")
        first, *others = self.steps
        text = f'"{first}"' if self.of_record and first in (*RESERVED, "$") else _written(first)
        return prefix + text + "".join(f"[{s}]" if isinstance(s, int) else f".{_written(s)}" for s in others)


@lru_cache(maxsize=10_000)
def parse_path(text: str) -> Path:
    """ValueError shows where the text stops being a path."""
    if text in OF_OBJECT:
        return Path("object", (text.removeprefix("@"),))
    if ROOT.match(text):
        return _from_root(text)
    prefix = next((prefix for prefix in PREFIXES if text.startswith(prefix)), "")
    origin = PREFIXES.get(prefix, "record")
    first, at = _key(text, len(prefix))
    steps: list[str | int] = [first]
    while at < len(text):
        step, at = _position(text, at) if text[at] == "[" else _key(text, _behind_dot(text, at))
        steps.append(step)
    if origin != "record" and (len(steps) > 1 or not OBJECT_NAME[origin].fullmatch(str(steps[0]))):
        raise _mistake(text, len(prefix), f"{prefix} needs one plain name, such as {prefix}game")
    if not prefix and first in RESERVED and text.startswith(str(first)):
        raise _mistake(
            text, 0, f'{first} is a property of the object, with no parts; the record\'s own key is written "{first}"'
        )
    return Path(origin, tuple(steps))


def _from_root(text: str) -> Path:
    """A path of JSONPath: only its beginning is understood."""
    inside = text.removeprefix("$.")
    if inside == text or not inside or inside.startswith((".", "@")):
        raise _mistake(text, 0, 'a path begins with a key, such as player.level; a key $ is written "$"')
    return parse_path(inside)


def _key(text: str, at: int) -> tuple[str | int, int]:
    """The key that begins here, and where it ends."""
    if quoted := QUOTED.match(text, at):
        return re.sub(r'\\(["\\])', r"\1", quoted[1]), quoted.end()
    if text.startswith('"', at):
        escape = re.search(r'\\(?!["\\])', text[at:].replace("\\\\", "  "))
        if escape:
            raise _mistake(text, at + escape.start(), 'only \\" and \\\\ are escapes in quotes')
        raise _mistake(text, at, "this quote does not close")
    bare = BARE.match(text, at)
    if bare is None or not bare[0].strip():
        raise _mistake(text, at, "a key is missing here" if _ends(text, at) else "such a key needs double quotes")
    if bare[0] != bare[0].strip():
        behind = bare[0] == bare[0].lstrip()
        raise _mistake(text, bare.end() - 1 if behind else at, "a key with a space at its end needs double quotes")
    return bare[0], bare.end()


def _ends(text: str, at: int) -> bool:
    return at >= len(text) or text[at] in ".["


def _position(text: str, at: int) -> tuple[str | int, int]:
    found = POSITION.match(text, at)
    if found is None and re.match(r"\[\*?\]", text[at:]):
        raise _mistake(
            text,
            at,
            "brackets need a position, such as items[0]; for all elements use `explode`; a personal field leaves them out",
        )
    if found is None:
        raise _mistake(text, at + 1, "a position in an array is a number, counted from 0, such as items[0]")
    return int(found[1]), found.end()


def _behind_dot(text: str, at: int) -> int:
    if text[at] != ".":
        raise _mistake(text, at, "a dot, or a position such as [0], must come between keys")
    return at + 1


def _mistake(text: str, at: int, why: str) -> ValueError:
    return ValueError(f"{why}\n    {text}\n    {' ' * at}^")


def _written(step: str | int) -> str:
    key = str(step)
    plain = BARE.fullmatch(key) is not None and key == key.strip()
    return key if plain else '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
