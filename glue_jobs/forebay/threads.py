"""The same question to many things at once, in threads: for what mostly waits for S3.

In: a function, and what it is called with. Out: its answers, in that order. The first exception is raised once the calls that
have begun have ended. The others are not made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Thing = TypeVar("Thing")
Answer = TypeVar("Answer")
Other = TypeVar("Other")


def in_threads(ask: Callable[[Thing], Answer], things: Iterable[Thing], at_once: int = 16) -> list[Answer]:
    with ThreadPoolExecutor(at_once, "answers") as threads:
        return list(threads.map(ask, things))


def answers_by(ask: Callable[[Thing], Answer], things: Iterable[Thing], at_once: int = 16) -> dict[Thing, Answer]:
    """The same, by thing."""
    asked = list(things)
    return dict(zip(asked, in_threads(ask, asked, at_once), strict=True))


def both(ask: Callable[[], Answer], other: Callable[[], Other]) -> tuple[Answer, Other]:
    """Two different questions."""
    with ThreadPoolExecutor(1, "answers") as thread:
        beside = thread.submit(other)
        return ask(), beside.result()
