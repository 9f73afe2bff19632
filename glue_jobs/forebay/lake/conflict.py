"""Commits of delta-rs that others may come before.

In: a function that reads a table and commits to it. Out: what it gives. A commit conflict changes nothing, so the function is
called again, after a growing pause, and reads what is there then. `Halt` where others always came first.
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
