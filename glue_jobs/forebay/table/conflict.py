"""Whether Delta refused a commit because somebody else's came first: then it may be tried again."""

from __future__ import annotations

__all__ = ["is_conflict"]


def is_conflict(refused: Exception) -> bool:
    return "DELTA_CONCURRENT" in str(refused) or "Concurrent" in type(refused).__name__
