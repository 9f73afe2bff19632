"""What pydantic refuses, in the words of a file of TOML: settings, declarations and contexts are told alike.

In: its errors. Out: `Problem`s.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from forebay.errors import Problem

__all__ = ["problems_of"]

KINDS = {
    "string_type": "a text",
    "dict_type": "a table of names and values",
    "model_type": "a table of names and values",
    "model_attributes_type": "a table of names and values",
    "tuple_type": "a list",
    "int_type": "a whole number",
    "float_type": "a number",
}
"""By pydantic's names, which are for Python."""


def problems_of(refused: ValidationError, where: Any) -> list[Problem]:
    """pydantic's errors in our words: `where` makes a place from a dotted path. A check of ours may find several things, a line
    each."""
    found = []
    for error in refused.errors():
        path = ".".join(str(part) for part in error["loc"])
        what = {"missing": "is missing", "extra_forbidden": "is unknown"}.get(error["type"], "")
        kind = KINDS.get(error["type"])
        # A message with a caret is one, and shows what was given.
        caret = error["msg"].endswith("^")
        message = f"must be {kind}" if kind else error["msg"].removeprefix("Value error, ")
        said = [what] if what else [message] if caret else message.splitlines()
        shown = what or caret or isinstance(error["input"], dict | list | tuple | BaseModel)
        given = "" if shown else f"; got {_as_written(error['input'])}"
        found += [Problem(where(path), line + given) for line in said]
    return found


def _as_written(value: Any) -> str:
    """In a file of TOML, where texts have quotes."""
    return repr(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
