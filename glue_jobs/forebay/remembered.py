"""Functions with their answers remembered: of a text, but not of long ones, which would fill the memory of a worker, and of an
object that never changes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast
from weakref import ref

ANSWERS, LONGEST = 100_000, 1000
"""The most answers, and the most characters of a text whose answer is kept. A worker reads files of many producers."""

Function = TypeVar("Function", bound=Callable[..., Any])
Object = TypeVar("Object")
Answer = TypeVar("Answer")


def remembered(function: Function) -> Function:
    """`cache_clear` forgets the answers, as that of `lru_cache` does."""
    kept = lru_cache(maxsize=ANSWERS)(function)

    @wraps(function)
    def answered(text: str, *more: Any) -> Any:
        return (kept if len(text) <= LONGEST else function)(text, *more)

    answered.cache_clear = kept.cache_clear  # type: ignore[attr-defined]
    return cast(Function, answered)


def remembered_of(function: Callable[[Object], Answer]) -> Callable[[Object], Answer]:
    """The same of an object that never changes, but that has no quick hash. The answer is forgotten with its object: a worker
    gets other objects with each task."""
    kept: dict[int, tuple[ref[Object], Answer]] = {}

    @wraps(function)
    def answered(one: Object) -> Answer:
        found = kept.get(at := id(one))
        if found is None:
            found = kept[at] = ref(one, lambda _: kept.pop(at, None)), function(one)
        return found[1]

    return answered
