"""How often something is tried, and how long to wait in between: requests to AWS, and commits after conflicts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

ATTEMPTS = 5
COMMITS = 9
"""Attempts at a commit that others come before."""


def backoff_s(attempt: int, chance: float) -> float:
    """How long to wait before trying again: a random part of a doubling span, so that many clients do not meet
    again."""
    return chance * min(20.0, 0.5 * 2.0**attempt)


def attempts(
    most: int = COMMITS, *, first_s: float = 0.2, longest_s: float = 60, sleep: Callable[[float], None] = time.sleep
) -> Iterator[int]:
    """The numbers of attempts. Before each but the first it waits, twice as long each time."""
    for number in range(most):
        if number:
            sleep(min(longest_s, first_s * 2.0 ** (number - 1)))
        yield number
