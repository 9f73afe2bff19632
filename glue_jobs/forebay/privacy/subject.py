"""Whose record a text is: the values of the field that the declarations call the subject.

In: the text of a JSON object, and the paths of the subject. Out: its values as text, each by its token. A field is meant in
every spelling that would share its column, and as often as it stands there. Null is nobody.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from forebay.declaration.form import PARENT, Keys
from forebay.declaration.personal import PersonalField, means, of_elements, of_surrounded
from forebay.privacy.swift import Swift, swift_of
from forebay.privacy.text import spelt_so
from forebay.privacy.token import remembered_token

__all__ = ["may_be_of", "subject_paths", "subject_tokens", "tokens_in", "values_at"]


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
    swift = _swift_of(tuple(paths))
    if swift is not None and (values := swift.values(text)) is not None:
        return tokens_in(values, secret)
    try:
        record = _DECODER.decode(text)
    except (ValueError, RecursionError):
        return set()
    return {remembered_token(value, secret) for path in paths for value in values_at(record, path)}


def tokens_in(values: Iterable[str], secret: bytes) -> set[str]:
    """Of what stood in the subject's fields: JSON of no object or array, without a backslash."""
    return {remembered_token(value.strip('"'), secret) for value in values if value != "null"}


def may_be_of(text: str, subject: Keys, tokens: Collection[str], secret: bytes) -> bool:
    """Whether the text may be of one of these, without parsing it. Without a backslash a quote ends a string."""
    pattern = _last_key(subject)
    if pattern is None or "\\" in text:
        return True
    values = (found[1] for found in pattern.finditer(text))
    return any(one in "[{" or remembered_token(one.strip('"'), secret) in tokens for one in values)


@lru_cache(maxsize=100)
def _last_key(subject: Keys) -> re.Pattern[str] | None:
    spelt = spelt_so(subject[-1].lower())
    return None if spelt is None else re.compile(rf'"{spelt}\s*:\s*("[^"]*"|[\[{{]|[^\s,\]}}]+)')


@lru_cache(maxsize=100)
def _swift_of(paths: tuple[Keys, ...]) -> Swift | None:
    return swift_of(tuple(PersonalField(path, "token") for path in paths))


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
