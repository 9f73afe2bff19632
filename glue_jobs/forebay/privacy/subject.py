"""The subject of a record: the values of the field that the declarations call the subject.

In: the text of a JSON object, and the paths of the subject. Out: its values as text, each by its token. All spellings of a
field that would share its column count, and all its occurrences, also in a text that holds JSON. Null means nobody.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from forebay.declaration.form import PARENT, Keys
from forebay.declaration.personal import (
    PersonalField,
    means,
    of_elements,
    of_flattened,
    of_surrounded,
    of_whole_documents,
)
from forebay.privacy.token import remembered_token


class _Members(list[Any]):
    """The members of an object; a key may occur twice."""


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Members, strict=False, parse_int=str, parse_float=str, parse_constant=str
)

BLANKS = " \t\r\n"
PIECE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^ \t\r\n{}\[\]:,"]+', re.DOTALL)
"""A piece of JSON: a text, a sign, or any other value."""


def subject_paths(
    subject: Keys, exploded: Iterable[Keys] = (), joints: Iterable[str] = (), inside: Iterable[Keys] = ()
) -> tuple[Keys, ...]:
    """Where it may be in a record: in itself, in the object around it, in an element of an exploded array, and in the records
    of a document that was not taken apart. `joints` and `inside` are as in `Form`."""
    own = [PersonalField(path, "dropped") for path in subject_spellings(subject, joints)]
    whole = [*own, *of_whole_documents(own, inside)]
    return tuple(one.path for one in (*of_surrounded(whole, PARENT), *of_elements(whole, list(exploded))))


def subject_spellings(subject: Keys, joints: Iterable[str]) -> tuple[Keys, ...]:
    """Its path, and the keys that share its column in tables that flatten objects."""
    return tuple(one.path for one in of_flattened((PersonalField(subject, "dropped"),), joints))


def is_record(text: str) -> bool:
    """Whether a text can have a subject: only a JSON object can."""
    try:
        return text.lstrip().startswith("{") and not [*_values_of(text, ())]
    except ValueError:
        return False


def subject_tokens(text: str, paths: Sequence[Keys], secret: bytes) -> set[str]:
    return {remembered_token(value, secret) for value in subject_values(text, paths)}


def subject_values(text: str, paths: Sequence[Keys]) -> set[str]:
    """Empty if the text is not a JSON object."""
    try:
        return {*_values_of(text, paths)}
    except ValueError:
        return set()


def _values_of(text: str, paths: Sequence[Keys]) -> Iterator[str]:
    try:
        record = _DECODER.decode(text)
    except RecursionError:
        yield from _values_of_deep(text, paths)
        return
    for path in paths:
        yield from values_at(record, path)


def values_at(value: Any, path: Keys) -> Iterator[str]:
    """Arrays on the way are passed through."""
    left = [(value, path)]
    while left:
        value, path = left.pop()
        if isinstance(value, _Members):
            left += [(inner, path[1:]) for key, inner in value if path and means(path[0], key)]
        elif isinstance(value, list):
            left += [(element, path) for element in value]
        elif isinstance(value, str) and value.lstrip(BLANKS)[:1] in ("{", "["):
            left += [(inner, path) for inner in _read(value)]
            yield from () if path else (value,)
        elif not path and value is not None:
            yield str(value).lower() if isinstance(value, bool) else str(value)


def _read(text: str) -> list[Any]:
    """Reads the JSON in a text, as a declared array, struct or map does."""
    try:
        return [_DECODER.decode(text)]
    except (ValueError, RecursionError):
        return []


def _values_of_deep(text: str, paths: Sequence[Keys]) -> Iterator[str]:
    """The values in a text that is nested too deep for the parser. ValueError if its brackets do not match."""
    around, here, is_key = list[tuple[bool, Sequence[Keys]]](), paths, False
    for found in PIECE.finditer(text):
        piece = found[0]
        if piece in ("{", "["):
            is_key = piece == "{"
            around.append((is_key, here))
        elif not around:
            raise ValueError("no object")
        elif piece in ("}", "]"):
            around.pop()
        elif piece == ",":
            is_key, here = around[-1]
        elif is_key:
            key, is_key = str(_DECODER.decode(piece)), False
            here = [path[1:] for path in around[-1][1] if path and means(path[0], key)]
        elif piece != ":":
            for path in here:
                yield from values_at(_DECODER.decode(piece), path)
    if around:
        raise ValueError("the object does not close")
