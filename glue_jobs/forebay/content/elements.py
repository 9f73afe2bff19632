"""Records inside documents: the objects of an array within a document, each a record of its own.

In: a text, where its documents are, and the paths of arrays, such as `Records` or `detail.items`. Out: where the records are,
and what surrounds each. Short documents are walked with Python's decoder, long and broken ones by their brackets with numpy,
so that one document may be as large as a file. A document without such an array, or with members that cannot be separated, is
one record as before. An element that is not an object is refused alone.

The surroundings of the elements, the document without its arrays, are in each of them as the field `@parent`. Where no
object could carry it, the document is one record as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from forebay.content.formats.json_text import spelt
from forebay.content.limits import Limits
from forebay.content.outcome import FileReason, TooMany
from forebay.content.splitting.lines import Records, lines_of
from forebay.content.splitting.skeleton import Skeleton, depth_beyond, skeleton
from forebay.content.splitting.structure import WHITE, structure_in, structure_of
from forebay.counted import counted
from forebay.declaration.form import Keys
from forebay.texts import BLANK, DECODER

SHORT_BYTES = 64 << 10

COMMA, OBJECT, OBJECT_END, ARRAY = (ord(c) for c in ",{}[")
_KEY = re.compile(rb'[ \t\r\n]*("(?:[^"\\]|\\.)*")[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_ESCAPE, _ESCAPE_OF_ASCII = re.compile(rb"\\u"), re.compile(rb"\\u00[2-7]")
_KEY_IN_TEXT = re.compile(_KEY.pattern.decode(), re.DOTALL)

# Short texts are read as Latin-1: a byte is a character, and places need no translation.
Span = tuple[int, int]
Member = tuple[Span, str, int]
"""The place of a member of an object, its key, and where its value begins."""


@dataclass(frozen=True, slots=True)
class _Object:
    """The text of an object without the arrays, or None where it contains no such array. Also the arrays' places, with an
    outline that they are in."""

    text: bytes | None
    arrays: list[tuple[Span, Skeleton | None]]


@dataclass(frozen=True, slots=True)
class _Members:
    """The members of an object; none where they cannot be separated. A long one also has the outline of its inside."""

    found: list[Member]
    outline: Skeleton | None = None


def as_one_document(text: bytes, start: int, end: int, paths: Sequence[Keys], limits: Limits) -> Records | None:
    """The elements of a long text that is one document, which is scanned once; None where it is not one document."""
    if end - start <= SHORT_BYTES or text[end - 1] != OBJECT_END:
        return None
    members = _members_of_long(text, start, end)
    if not members.found or members.outline is None or not members.outline.even:
        return None
    starts, ends = np.array([start], np.int64), np.array([end], np.int64)
    line_count = text.count(b"\n") + (not text.endswith(b"\n"))
    document = Records(starts, ends, lines_of(text, starts), [], line_count, False)
    return taken_apart(text, document, paths, limits, members)


def taken_apart(
    text: bytes, documents: Records, paths: Sequence[Keys], limits: Limits, members: _Members | None = None
) -> Records:
    """The documents, or in place of each one that has such arrays their elements. Raises `TooMany`. `members` are those of a
    document that is the only one."""
    if not len(documents.starts) or not any(names(text, path[0]) for path in paths):
        return documents
    places: list[Any] = []
    parents: list[Any] = []
    leftovers: list[tuple[int, int]] = []
    surroundings: list[bytes] = []
    count = 0
    for start, end in zip(documents.starts.tolist(), documents.ends.tolist(), strict=True):
        rest = _without_arrays(text, start, end, paths, members)
        if rest.text is not None and not _can_surround(rest.text, limits):
            rest = _Object(None, [])  # refused as a whole, with the reason
        has_parent = rest.text not in (None, b"{}")
        found, others = (_NO_ROWS, []) if rest.text is None else _objects_in_all(text, rest.arrays, limits)
        if rest.text is None or (has_parent and not len(found)):
            found, others, has_parent = _rows_of_two([(start, end)]), [], False
        places.append(found)
        parents.append(np.full(len(found), len(surroundings) if has_parent else -1, np.int32))
        surroundings += [rest.text] if has_parent and rest.text is not None else []
        leftovers += others
        count += len(found)
        if max(count - limits.max_records, len(leftovers) - limits.max_refused) > 0:
            reason: FileReason = "too-many-records" if count > limits.max_records else "too-many-refused"
            most = f"{counted(limits.max_records, 'record')} and {counted(limits.max_refused, 'refused one')}"
            raise TooMany(reason, f"{most} are the limits")
    return _records(text, documents, np.concatenate(places), leftovers, np.concatenate(parents), surroundings)


def _can_surround(text: bytes, limits: Limits) -> bool:
    """Whether a record can contain it, one level deeper."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return len(text) <= limits.max_record_bytes and not depth_beyond(text, limits.max_depth - 1)


def _records(
    text: bytes,
    documents: Records,
    places: Any,
    leftovers: list[tuple[int, int]],
    parents: Any,
    surroundings: list[bytes],
) -> Records:
    numbers = lines_of(text, np.array([start for start, _ in leftovers], np.int64)).tolist()
    others = [(start, end, line) for (start, end), line in zip(leftovers, numbers, strict=True)]
    return Records(
        places[:, 0],
        places[:, 1],
        lines_of(text, places[:, 0]),
        sorted([*documents.leftovers, *others]),
        documents.line_count,
        False,
        parents if surroundings else None,
        surroundings,
    )


def names(text: bytes, key: str, start: int = 0, end: int | None = None) -> bool:
    """Whether a text, or a part of it, may have this key. Escapes may spell any key."""
    stop = len(text) if end is None else end
    if any(text.find(spelling, start, stop) >= 0 for spelling in _spellings(key)):
        return True
    return (_ESCAPE_OF_ASCII if key.isascii() else _ESCAPE).search(text, start, stop) is not None


@lru_cache
def _spellings(key: str) -> frozenset[bytes]:
    """The spellings that producers use: many escape characters that are not ASCII with backslashes, and PHP escapes slashes,
    too."""
    ascii_only = json.dumps(key)
    in_capitals = re.sub(r"\\u[0-9a-f]{4}", lambda found: r"\u" + found[0][2:].upper(), ascii_only)
    plain = {spelt(key), ascii_only.encode(), in_capitals.encode()}
    return frozenset(plain | {one.replace(b"/", rb"\/") for one in plain})


def _without_arrays(
    text: bytes, start: int, end: int, paths: Sequence[Keys], members: _Members | None = None
) -> _Object:
    """Examines a document only where it contains one of the names. For most documents this is one search."""
    wanted = [path for path in paths if names(text, path[0], start, end)]
    members = members or (_members_of(text, start, end) if wanted else _Members([]))
    arrays: list[tuple[Span, Skeleton | None]] = []
    left: list[bytes] = []
    taken = False
    for (first, last), key, value in members.found if wanted else ():
        deeper = [path[1:] for path in wanted if path[0] == key]
        inner = _Object(None, [])
        if () in deeper and text[value] == ARRAY:
            inner = _Object(b"", [((value, last), members.outline)])
        elif any(deeper) and text[value] == OBJECT:
            inner = _without_arrays(text, value, last, [path for path in deeper if path])
        arrays += inner.arrays
        taken = taken or inner.text is not None
        if inner.text != b"":
            left.append(text[first:last] if inner.text is None else text[first:value] + inner.text)
    return _Object(b"{" + b",".join(left) + b"}" if taken else None, arrays)


def members_of(text: bytes, start: int, end: int) -> list[Member]:
    """The members of an object; none where they cannot be separated."""
    return _members_of(text, start, end).found


def _members_of(text: bytes, start: int, end: int) -> _Members:
    if end - start <= SHORT_BYTES:
        try:
            return _Members(list(_members_of_short(text[start:end].decode("latin-1"), start)))
        except (ValueError, RecursionError):
            pass
    return _members_of_long(text, start, end)


def _members_of_short(text: str, offset: int) -> Iterator[Member]:
    at = _past_blanks(text, 1)
    while text[at] != "}":
        named = _KEY_IN_TEXT.match(text, at)
        if named is None:
            raise ValueError("no key")
        _, last = DECODER.raw_decode(text, named.end())
        yield (at + offset, last + offset), _key_of(named[1].encode("latin-1")), named.end() + offset
        at = _behind_value(text, last, "}")


def _members_of_long(text: bytes, start: int, end: int) -> _Members:
    outline = skeleton(text, start + 1, end - 1)
    commas: Any = outline.position[(outline.symbol == COMMA) & (outline.level == 0)]
    members: list[Member] = []
    for before, after in pairwise([start, *np.asarray(commas).tolist(), end - 1]):
        named = _KEY.match(text, before + 1, after)
        if named is None or not outline.complete:
            return _Members([])
        try:
            key = _key_of(named[1])
        except ValueError:
            return _Members([])
        members.append(((named.start(1), _without_white_end(text, named.end(), after)), key, named.end()))
    return _Members(members, outline)


def _without_white_end(text: bytes, start: int, end: int) -> int:
    while end > start and text[end - 1] in WHITE:
        end -= 1
    return end


def _objects_in_all(text: bytes, arrays: list[tuple[Span, Skeleton | None]], limits: Limits) -> tuple[Any, list[Span]]:
    both = [objects_in(text, *place, limits, outline) for place, outline in arrays]
    return np.concatenate([objects for objects, _ in both]), [place for _, others in both for place in others]


def objects_in(
    text: bytes, first: int, last: int, limits: Limits, outline: Skeleton | None = None
) -> tuple[Any, list[Span]]:
    """The places of the objects in an array, a row of two each, and its other elements."""
    if last - first <= SHORT_BYTES:
        try:
            places = list(_elements_of_short(text[first:last].decode("latin-1"), first))
        except (ValueError, RecursionError):
            pass
        else:
            objects = [place for place in places if text[place[0]] == OBJECT]
            return _rows_of_two(objects), [place for place in places if text[place[0]] != OBJECT]
    if outline is not None:
        shape = structure_in(text, first, last, outline.part(first, last))
        return np.stack((shape.starts, shape.ends), axis=1), shape.leftovers
    shape = structure_of(text[first:last], limits)
    leftovers = [(start + first, end + first) for start, end in shape.leftovers]
    return np.stack((shape.starts, shape.ends), axis=1) + first, leftovers


def _rows_of_two(places: list[Span]) -> Any:
    return np.array(places, np.int64).reshape(-1, 2)


_NO_ROWS = _rows_of_two([])


def _elements_of_short(text: str, offset: int) -> Iterator[Span]:
    at = _past_blanks(text, 1)
    while text[at] != "]":
        _, last = DECODER.raw_decode(text, at)
        yield at + offset, last + offset
        at = _behind_value(text, last, "]")


def _behind_value(text: str, at: int, close: str) -> int:
    """Where the next value begins, or the container closes."""
    at = _past_blanks(text, at)
    if text[at] == close:
        return at
    if text[at] != ",":
        raise ValueError("no comma")
    return _past_blanks(text, at + 1)


def _past_blanks(text: str, at: int) -> int:
    found = BLANK.match(text, at)
    end = at if found is None else found.end()
    if end >= len(text):
        raise ValueError("torn")
    return end


def _key_of(quoted: bytes) -> str:
    return str(json.loads(quoted))
