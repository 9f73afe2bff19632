"""Numbers of things, as a person reads them: `1 file waits`, `1,200 files wait`, `1 of 3 files was read`. Pure."""

from __future__ import annotations

_PLURALS = {"person": "people", "is": "are", "was": "were", "has": "have", "does": "do"}


def counted(count: int, noun: str, verb: str = "", *, of: int | None = None) -> str:
    """Give the noun and the verb of one thing. The verb goes with `count`; with `of`, the noun is of many unless both are 1."""
    number = f"{count:,}" if of is None else f"{count:,} of {of:,}"
    things = noun if count == 1 and of in (None, 1) else _plural(noun)
    return f"{number} {things} {agreed(count, verb)}" if verb else f"{number} {things}"


def agreed(count: int, verb: str) -> str:
    """The verb alone, where it is not beside the noun. Its first word is declined."""
    first, blank, rest = verb.partition(" ")
    return verb if count == 1 else _PLURALS.get(first, first.removesuffix("s")) + blank + rest


def _plural(noun: str) -> str:
    before, blank, last = noun.rpartition(" ")
    return before + blank + (_PLURALS.get(last) or _regular(last))


def _regular(noun: str) -> str:
    if noun.endswith(("ch", "sh", "s", "x")):
        return noun + "es"
    return noun[:-1] + "ies" if noun.endswith("y") and noun[-2] not in "aeiou" else noun + "s"
