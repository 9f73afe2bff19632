"""Retries commits of delta-rs after commit conflicts.

In: a function that reads a table and commits to it. Out: its result. A commit conflict changes nothing, so the function is
called again, after a growing pause, and reads the new state. `Halt` if other writers always came first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from deltalake.exceptions import CommitFailedError

from forebay.errors import Halt

__all__ = ["commit"]

ATTEMPTS = 10
T = TypeVar("T")


def commit(attempt: Callable[[], T], *, refused: str, sleep: Callable[[float], None] = time.sleep) -> T:
    """`attempt` must read the table itself. `refused` says what was done, and what to do."""
    for number in range(ATTEMPTS):
        try:
            return attempt()
        except CommitFailedError:
            if number + 1 < ATTEMPTS:
                sleep(0.1 * 2**number)
    raise Halt(refused)
