"""Explodes nested arrays for a table: their objects become their own records, beside the surrounding record.

In: the records of a text, and which arrays of theirs are exploded. Out: the same records, and the elements among them, each
with its own place. An element carries the fields that its table reads from the record (`@parent`), its position in the array
from 0 (`@ordinal`), and its array (`@exploded`). So a held element can be retried alone. An element that is not an object is
refused alone.

The record keeps its array. Raises `TooMany`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from forebay.content.elements import ARRAY, OBJECT, Member, Span, members_of, names, objects_in
from forebay.content.formats.json_text import spelt
from forebay.content.limits import Limits
from forebay.content.outcome import FileReason, RecordReason, Refused, TooMany
from forebay.content.splitting.lines import lines_of
from forebay.content.splitting.skeleton import depth_beyond
from forebay.content.vetting import Elements, Split, why_no_record
from forebay.declaration.form import PARENT, Explosion, Keys
from forebay.declaration.path import Path

MOST_KEPT = 64 << 10
"""Bytes that a record may give each element of an array; with more, ten thousand elements would be gigabytes."""


_Why = tuple[RecordReason, str] | None
"""Why an element is refused; None where it is not an object."""


@dataclass
class _Found:
    """The elements found so far, in parallel lists."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    ordinals: list[int] = field(default_factory=list)
    arrays: list[int] = field(default_factory=list)
    surroundings: list[bytes] = field(default_factory=list)
    refused: list[tuple[int, int, _Why]] = field(default_factory=list)


def with_exploded(text: bytes, records: Split, explosions: Sequence[Explosion], limits: Limits) -> Split:
    """The records, and the elements of these arrays."""
    # Of an ordinary text this is one search for each array.
    wanted = [(n, one) for n, one in enumerate(explosions) if names(text, one.path[0])]
    if not wanted:
        return records
    found = _Found(surroundings=[*records.surroundings])
    parents = np.full(len(records.starts), -1, np.int32) if records.parents is None else records.parents
    places = zip(records.starts.tolist(), records.ends.tolist(), parents.tolist(), strict=True)
    for start, end, parent in places:
        here = [(n, one) for n, one in wanted if names(text, one.path[0], start, end)]
        members = members_of(text, start, end) if here else []
        around = b"" if parent < 0 else records.surroundings[parent]
        for n, one in here:
            for array in _arrays_at(text, members, one.path):
                _add(found, text, array, n, _kept(text, members, one.kept, around), limits)
        _refuse_too_many(len(records.starts) + len(found.starts), "too-many-records", limits.max_records)
        _refuse_too_many(len(records.refused) + len(found.refused), "too-many-refused", limits.max_refused)
    return _together(text, records, parents, found, explosions, limits)


def _arrays_at(text: bytes, members: list[Member], path: Keys) -> Iterator[Span]:
    first, *rest = path
    for (_, last), key, value in members:
        if key != first:
            continue
        if not rest and text[value] == ARRAY:
            yield value, last
        elif rest and text[value] == OBJECT:
            yield from _arrays_at(text, members_of(text, value, last), tuple(rest))


def _kept(text: bytes, members: list[Member], keys: Sequence[str], around: bytes) -> bytes:
    """The record's members with these keys, unchanged; with the surroundings of the record itself, if `around` has them."""
    has_parent = bool(around) and PARENT in keys  # a field of the record's own that is called so is no longer
    kept = [text[first:last] for (first, last), key, _ in members if key in keys and not (has_parent and key == PARENT)]
    if has_parent:
        kept.append(spelt(PARENT) + b":" + around)
    return b"{" + b",".join(kept) + b"}"


def _add(found: _Found, text: bytes, array: Span, number: int, kept: bytes, limits: Limits) -> None:
    found_objects, others = objects_in(text, *array, limits)
    objects = found_objects.tolist()
    ordinals = {start: n for n, start in enumerate(sorted(start for start, _ in [*objects, *others]))}
    found.refused += [(start, end, None) for start, end in others]
    if why := _why_not_kept(kept, limits):
        found.refused += [(start, end, why) for start, end in objects]
        return
    for start, end in objects:
        found.starts.append(start)
        found.ends.append(end)
        found.parents.append(len(found.surroundings))
        found.ordinals.append(ordinals[start])
        found.arrays.append(number)
    found.surroundings.append(kept)


def _why_not_kept(kept: bytes, limits: Limits) -> _Why:
    """The reason why no element can contain this part of its record."""
    if len(kept) > MOST_KEPT:
        detail = f"its record adds {len(kept)} bytes to each element, and {MOST_KEPT} is the limit"
        return "record-too-large", detail
    if depth := depth_beyond(kept, limits.max_depth - 1):
        return (
            "too-deep",
            f"nested {depth + 1} levels deep with the fields of its record; {limits.max_depth} is the limit",
        )
    return None


def _refuse_too_many(count: int, reason: FileReason, most: int) -> None:
    if count > most:
        raise TooMany(reason, f"{most} is the limit, with the elements of exploded arrays")


def _together(
    text: bytes, records: Split, parents: Any, found: _Found, explosions: Sequence[Explosion], limits: Limits
) -> Split:
    """Merges records and elements in the order of their positions. An element begins after the surrounding record, and before
    the next one."""
    starts = np.concatenate((records.starts, np.array(found.starts, np.int64)))
    order = np.argsort(starts, kind="stable")
    no_element = np.full(len(records.starts), -1, np.int32)

    def ordered(of_records: Any, of_elements: list[int]) -> Any:
        return np.concatenate((of_records, np.array(of_elements, of_records.dtype)))[order]

    elements = Elements(
        ordered(no_element, found.ordinals), ordered(no_element, found.arrays), [_name(one.path) for one in explosions]
    )
    refused = sorted(found.refused, key=lambda one: one[0])
    lines = lines_of(text, np.array([start for start, *_ in refused], np.int64)).tolist()
    others = [_refused(text, *one, line, limits) for one, line in zip(refused, lines, strict=True)]
    return replace(
        records,
        starts=starts[order],
        ends=ordered(records.ends.astype(np.int64, copy=False), found.ends),
        lines=lines_of(text, starts[order]),
        refused=sorted([*records.refused, *others], key=lambda one: one.start),
        tight=False,
        parents=ordered(parents, found.parents),
        surroundings=found.surroundings,
        elements=elements,
    )


def _name(path: Keys) -> bytes:
    """The path as declared, in JSON."""
    return json.dumps(str(Path("record", path)), ensure_ascii=False).encode()


def _refused(text: bytes, start: int, end: int, why: _Why, line: int, limits: Limits) -> Refused:
    return Refused(start, end, line, *(why or why_no_record(text[start:end], limits)))
