"""Personal fields: the fields of a record that are treated before anything is stored, and how.

Pure, and light enough for tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from forebay.declaration.column_name import is_twin, safe_name

Keys = tuple[str, ...]

Become = Literal[
    "dropped",  # the field is not there
    "masked",  # its values are ***
    "token",  # its values are stand-ins, the same for the same value, by which nobody finds it
    "truncated",  # an IP address is its network, a date the first of its year; any other value is masked
]

ANY_KEY = "*"
BLANKS = "".join(sign for sign in map(chr, range(0x3001)) if sign.isspace()) + "\0\u200b\ufeff"
"""Invisible characters around a key, also the byte order mark."""


@dataclass(frozen=True, slots=True)
class PersonalField:
    """Arrays on the way are passed through; the step `*` is any key. With `vault`, what was there goes into the vault."""

    path: Keys
    become: Become
    vault: bool = False

    @property
    def label(self) -> str:
        return ".".join(self.path)


def begins(path: Sequence[str], keys: Sequence[str]) -> bool:
    """Whether a personal path is a prefix of these keys, or equals them."""
    return len(path) <= len(keys) and all(means(step, key) for step, key in zip(path, keys, strict=False))


def means(step: str, key: str) -> bool:
    """Whether a step of a personal path is this key, in any spelling that would share its column, and with blanks around it."""
    bare = key.strip(BLANKS)
    return step in (key, bare, ANY_KEY) or is_twin(bare, step) or safe_name(bare) == safe_name(step)


def may_hold(path: Keys, column: str, joint: str = "") -> bool:
    """Whether a column may have values of the field at this path, whose steps were joined where objects are flattened. A key
    with blanks around it has a column with underscores in their place."""
    if means(joint.join(path), column):
        return True
    pattern = _columns_of(path, joint)
    return pattern is not None and pattern.fullmatch(column) is not None


@lru_cache(maxsize=10_000)
def _columns_of(path: Keys, joint: str) -> re.Pattern[str] | None:
    """None where only exact names count: other scripts have a mark in the names of their columns."""
    if ANY_KEY in path or not all(step.isascii() for step in path):
        return None
    first, *others = (re.sub(r"[^a-z0-9]", "_", step.lower()) for step in path)
    between = f"_*{re.sub(r'[^a-z0-9]', '_', joint.lower())}_*"
    begins = "(?:x_*)?" if first.startswith("_") else "(?:x_+)?"
    return re.compile(f"{begins}{between.join((first, *others))}_*")


def of_surrounded(fields: Iterable[PersonalField], parent: str) -> tuple[PersonalField, ...]:
    """The same fields of a record, of its surroundings and of theirs, and of its own field of that name (`content.added`)."""
    again = tuple(fields)
    own = (replace(one, path=(f"@{parent}", *one.path)) for one in again)
    around = (replace(one, path=(parent, *one.path)) for one in again)
    beyond = (replace(one, path=(parent, parent, *one.path)) for one in again)
    return (*again, *around, *beyond, *own)


def of_whole_documents(fields: Iterable[PersonalField], arrays: Iterable[Keys]) -> tuple[PersonalField, ...]:
    """The same fields of the records in these arrays of documents. A document that spells the array otherwise, or has something
    else there, is one record with all of them."""
    again, arrays = tuple(fields), tuple(arrays)
    return tuple(replace(one, path=(*array, *one.path)) for one in again for array in arrays)


def of_flattened(fields: Iterable[PersonalField], joints: Iterable[str]) -> tuple[PersonalField, ...]:
    """The same fields, and each under the keys of a record that was flattened before: with the joint `_`, `device_id`
    shares the column of device.id. A field with its own declaration follows that."""
    again = tuple(fields)
    joined = (replace(one, path=path) for one in again for joint in joints for path in _joined(one.path, joint))
    own = (one for one in joined if not any(begins(other.path, one.path) for other in again))
    return tuple(dict.fromkeys((*again, *own)))


def _joined(path: Keys, joint: str) -> Iterator[Keys]:
    """The paths a.b.c, a_b.c, a.b_c and a_b_c. The beginning of a step that matches any key is unknown."""
    if len(path) < 2:
        yield path
        return
    for behind in _joined(path[1:], joint):
        yield (path[0], *behind)
        if ANY_KEY not in (path[0], behind[0]):
            yield (joint.join((path[0], behind[0])), *behind[1:])


def of_elements(fields: Iterable[PersonalField], arrays: Sequence[Keys]) -> tuple[PersonalField, ...]:
    """The personal fields of these arrays' elements, with paths relative to an element."""
    within = (
        replace(one, path=one.path[len(array) :])
        for one in fields
        for array in arrays
        if len(one.path) > len(array) and all(means(*pair) for pair in zip(one.path, array, strict=False))
    )
    return tuple(dict.fromkeys(within))
