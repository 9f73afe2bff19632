"""Whose record a text is: the values of the field that the declarations call the subject.

In: the text of a JSON object, and the paths of the subject. Out: its values as text, each by its token. A field is meant in
every spelling that would share its column, and as often as it stands there. Null is nobody.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from forebay.declaration.form import PARENT, Keys
from forebay.declaration.personal import PersonalField, means, of_elements, of_surrounded
from forebay.privacy.token import remembered_token

__all__ = ["subject_paths", "subject_tokens", "values_at"]


class _Members(list[Any]):
    """Of an object: a key may stand twice."""


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Members, strict=False, parse_int=str, parse_float=str, parse_constant=str
)


def subject_paths(subject: Keys, exploded: Iterable[Keys] = ()) -> tuple[Keys, ...]:
    """Where it may lie in a record: in itself, in what surrounds it, and in an element of an exploded array."""
    whole = (PersonalField(subject, "dropped"),)
    return tuple(one.path for one in (*of_surrounded(whole, PARENT), *of_elements(whole, list(exploded))))


def subject_tokens(text: str, paths: Sequence[Keys], secret: bytes) -> set[str]:
    """None of a text that is no JSON object."""
    try:
        record = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return set()
    return {remembered_token(value, secret) for path in paths for value in values_at(record, path)}


def values_at(value: Any, path: Keys) -> Iterator[str]:
    """Arrays on the way are passed through."""
    if isinstance(value, _Members):
        for key, inner in value:
            if path and means(path[0], key):
                yield from values_at(inner, path[1:])
    elif isinstance(value, list):
        for element in value:
            yield from values_at(element, path)
    elif not path and value is not None:
        yield str(value).lower() if isinstance(value, bool) else str(value)
