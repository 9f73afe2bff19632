"""A name that two declared patterns may both give, such as `a_log`: `{game}` gives it to one table, `{game}_log` to another.

In: two patterns, each with the pattern of its values. Out: the shortest such name that was found, or None. Values of the usual
pattern, and words separated by |, are compared exactly. For other patterns a few names are tried, so None is not a guarantee.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product

USUAL_VALUES = "[a-z0-9][a-z0-9_]{0,62}"
WORDS = re.compile(r"[A-Za-z0-9_\-]+(\|[A-Za-z0-9_\-]+)*")
MOST_SPELLINGS = 100
"""The most names of one pattern whose values are words."""
TRIED_AGAIN = 8
"""How often a place of two patterns is looked at, where the first name that leads there may not match the values."""
FIRST, MORE = "first", "more"
"""Characters of a value: its first one, and any number of others."""


@dataclass(frozen=True)
class Pattern:
    """`text` is a name with {fields}, and each of these has one of the `values`."""

    text: str
    values: str = USUAL_VALUES

    def gives(self, name: str) -> bool:
        return re.fullmatch(self.regular_expression, name, re.ASCII) is not None

    @property
    def regular_expression(self) -> str:
        """The regular expression. Flags such as (?i) apply to the values only."""
        values = re.sub(r"^\(\?([a-z]+)\)(.*)$", r"(?\1:\2)", self.values, flags=re.DOTALL)
        return f"(?:{values})".join(map(re.escape, self._literals))

    @property
    def rank(self) -> tuple[bool, int, bool]:
        """The rank of a pattern. A more specific pattern ranks lower: a full name, more literal characters, or listed
        values."""
        literals = self._literals
        return len(literals) > 1, -sum(map(len, literals)), WORDS.fullmatch(self.values) is None

    @property
    def is_exact(self) -> bool:
        return self.values == USUAL_VALUES or WORDS.fullmatch(self.values) is not None

    def spellings(self) -> Iterator[tuple[str, ...]]:
        """Its characters, with FIRST and MORE for a value; where values are words, a spelling for each choice of them."""
        first, *rest = self._literals
        words = [tuple(word) for word in self.values.split("|")] if WORDS.fullmatch(self.values) else [(FIRST, MORE)]
        for chosen in islice(product(words, repeat=len(rest)), MOST_SPELLINGS):
            values = zip(chosen, rest, strict=True)
            yield (*first, *(character for value, literal in values for character in (*value, *literal)))

    @property
    def _literals(self) -> list[str]:
        return re.split(r"\{[^{}]*\}", self.text)


def common_name(one: Pattern, other: Pattern) -> str | None:
    visits = 1 if one.is_exact and other.is_exact else TRIED_AGAIN
    found = (name for a in one.spellings() for b in other.spellings() for name in _names(a, b, visits))
    return next((name for name in found if one.gives(name) and other.gives(name)), None)


def _names(one: tuple[str, ...], other: tuple[str, ...], visits: int) -> Iterator[str]:
    """Names that both spellings allow, the shortest first."""
    seen: Counter[tuple[int, int]] = Counter()
    waiting = deque([(0, 0, "")])
    while waiting:
        i, j, name = waiting.popleft()
        seen[i, j] += 1
        if seen[i, j] > visits:
            continue
        if i == len(one) and j == len(other):
            yield name
            continue
        here, there = one[i : i + 1], other[j : j + 1]
        skipped = [(i + 1, j, name)] if here == (MORE,) else []
        skipped += [(i, j + 1, name)] if there == (MORE,) else []
        waiting.extendleft(skipped)
        if here and there:
            after = i + (here != (MORE,)), j + (there != (MORE,))
            waiting.extend((*after, name + character) for character in _both(here[0], there[0]))


def _both(one: str, other: str) -> str:
    """Characters that both allow; a sample if there are many."""
    literal = [part for part in (one, other) if part not in (FIRST, MORE)]
    if not literal:
        return "a1"
    fits = len(set(literal)) == 1 and (FIRST not in (one, other) or literal[0] not in "_-")
    return literal[0] if fits else ""
