"""Turns what pydantic refuses into problems in the words of a TOML file. Settings, declarations and contexts share it.

In: pydantic's errors. Out: `Problem`s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ValidationError

from forebay.errors import Problem

Location = tuple[int | str, ...]

KINDS = {
    "string_type": "a text",
    "dict_type": "a table of names and values",
    "model_type": "a table of names and values",
    "model_attributes_type": "a table of names and values",
    "tuple_type": "a list",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "literal_error": "{expected}",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "string_too_long": "at most {max_length} characters long",
}
"""The kinds of values, by pydantic's names, which are for Python."""

EMPTY = ("string_too_short", "too_short")


def problems_of(refused: ValidationError, where: Any) -> list[Problem]:
    """pydantic's errors in our words: `where` makes a place from a dotted path."""
    return [Problem(where(".".join(map(str, at))), what) for at, what in refusals_of(refused)]


def refusals_of(refused: ValidationError) -> Iterator[tuple[Location, str]]:
    """The location of each mistake, and what is wrong there. A check of ours may find several mistakes, one a line."""
    errors = refused.errors()
    around = {tuple(error["loc"][:depth]) for error in errors for depth in range(len(error["loc"]))}
    for error in errors:
        kind, at = error["type"], tuple(error["loc"])
        if kind in ("missing", "extra_forbidden"):
            yield at, "is missing" if kind == "missing" else "is unknown"
            continue
        if kind in EMPTY:
            if at not in around:  # else pydantic counts only the elements that are valid
                yield at, "must not be empty"
            continue
        message = error["msg"].removeprefix("Value error, ")
        if kind in KINDS:
            bounds = {name: _plain(value) for name, value in error.get("ctx", {}).items()}
            message = f"must be {KINDS[kind].format_map(bounds)}"
        # A message with a caret is one, and shows what was given.
        caret = message.endswith("^")
        shown = caret or isinstance(error["input"], dict | list | tuple | BaseModel)
        given = "" if shown else f"; got {_as_written(error['input'])}"
        yield from ((at, line + given) for line in ([message] if caret else message.splitlines()))


def _plain(bound: Any) -> Any:
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound


def _as_written(value: Any) -> str:
    """The value as in a TOML file, where texts have quotes."""
    return repr(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
