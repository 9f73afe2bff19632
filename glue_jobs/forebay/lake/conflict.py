"""Retries commits of delta-rs after commit conflicts.

In: a function that reads a table and commits to it. Out: its result. A commit conflict changes nothing, so the function is
called again, after a growing pause, and reads the new state. `Halt` if other writers always came first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from deltalake.exceptions import CommitFailedError

from forebay.aws.retrying import attempts
from forebay.errors import Halt

T = TypeVar("T")


def commit(attempt: Callable[[], T], *, refused: str, sleep: Callable[[float], None] = time.sleep) -> T:
    """`attempt` must read the table itself. `refused` says what was done, and what to do."""
    for _ in attempts(sleep=sleep):
        try:
            return attempt()
        except CommitFailedError:
            pass
    raise Halt(refused)
