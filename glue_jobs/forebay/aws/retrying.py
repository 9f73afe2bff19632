"""How often something is tried, and how long to wait in between; the same for the queue and for the store."""

from __future__ import annotations

__all__ = ["ATTEMPTS", "backoff_s"]

ATTEMPTS = 5


def backoff_s(attempt: int, chance: float, *, first_s: float = 0.5, most_s: float = 20.0) -> float:
    """How long to wait before trying again: a random part of a doubling span, so that many clients do not meet
    again."""
    return chance * min(most_s, first_s * 2.0 ** min(attempt, 16))
