"""A function of a text, with its answers remembered; but not those of long texts, which would fill the memory of a worker."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

ANSWERS, LONGEST = 100_000, 1000
"""The most answers, and the most characters of a text whose answer is kept. A worker reads files of many producers."""

Function = TypeVar("Function", bound=Callable[..., Any])


def remembered(function: Function) -> Function:
    """`cache_clear` forgets the answers, as that of `lru_cache` does."""
    kept = lru_cache(maxsize=ANSWERS)(function)

    @wraps(function)
    def answered(text: str, *more: Any) -> Any:
        return (kept if len(text) <= LONGEST else function)(text, *more)

    answered.cache_clear = kept.cache_clear  # type: ignore[attr-defined]
    return cast(Function, answered)
