"""What `text` does, in a fifth of the time, for records in which each personal field is told apart by its key alone.

In: the text of a record, and which of its fields are personal. Out: the text, treated; None where only a walk through the text
can tell. A regular expression finds the keys in the text, and the parsed record says how many of them are meant. If that is
all of them, each is meant, and its value is replaced where it stands. `text` is the definition, and a test compares the two.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from forebay.declaration.personal import ANY_KEY, Become, PersonalField
from forebay.privacy.text import Level, level_of, spelt_so
from forebay.privacy.value import treated_value

__all__ = ["swiftly_treated"]

# Without a backslash in the text, a quote ends a string.
SCALAR = r'"[^"]*"|[^\s"\[\]{},]+'
BLANK = " \t\r\n"
_BLANKS = re.compile(f"[{BLANK}]*")


def swiftly_treated(text: str, fields: tuple[PersonalField, ...], secret: bytes = b"") -> str | None:
    plan = _plan_of(fields)
    if plan is None or "\\" in text:
        return None
    pattern, become_of = plan
    found = list(pattern.finditer(text))
    try:
        record = json.loads(text)
        if not isinstance(record, dict) or _meant(record, level_of(fields)) != len(found):
            return None
    except (ValueError, RecursionError):
        return None
    kept, at = "", 0
    for one in found:
        group = one.lastindex or 0
        if become_of[group] == "dropped":
            kept += text[at : one.start()]
            kept, at = _without_comma(kept, text, one.end())
        else:
            kept += text[at : one.start(group)] + treated_value(one[group], become_of[group], secret)
            at = one.end()
    return kept + text[at:]


def _without_comma(kept: str, text: str, end: int) -> tuple[str, int]:
    """What goes with a member that ended here: the comma behind it, or before it if it was the last one."""
    rest = _BLANKS.match(text, end)
    after = end if rest is None else rest.end()
    if text[after] == ",":
        return kept, after + 1
    return kept.rstrip(BLANK).removesuffix(","), after


@lru_cache(maxsize=100)
def _plan_of(fields: tuple[PersonalField, ...]) -> tuple[re.Pattern[str], list[Become]] | None:
    """An expression with a group for the value of each last key, and what the values of each become, from 1."""
    become: dict[str, Become] = {}
    for field in fields:
        # In small letters: two spellings of one key are one.
        spelt = None if field.path[-1] == ANY_KEY else spelt_so(field.path[-1].lower())
        if spelt is None or become.setdefault(spelt, field.become) != field.become:
            return None
    # The quote comes first, so that the expression is tried at quotes alone.
    keys = "|".join(rf"{spelt}\s*:\s*({SCALAR})" for spelt in become)
    return re.compile(f'"(?:{keys})'), ["dropped", *become.values()]


def _meant(value: Any, level: Level) -> int:
    """How many personal values there are; ValueError where one is an object or an array."""
    if isinstance(value, list):
        return sum(_meant(element, level) for element in value)
    if not isinstance(value, dict):
        return 0
    count = 0
    for key, inner in value.items():
        below = level.below(key)
        if below is None:
            continue
        if below.whole is None:
            count += _meant(inner, below)
        elif isinstance(inner, (dict, list)):
            raise ValueError("each value in it is meant")
        else:
            count += 1
    return count
