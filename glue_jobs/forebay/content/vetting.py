"""Refuses records that the parser or a table cannot accept, and gives the reason.

In: a text and the places of its records. Out: `Split`. Raises `TooMany`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from forebay.content.limits import Limits
from forebay.content.outcome import FileReason, RecordReason, Refused, TooMany
from forebay.content.splitting.lines import SHORT_BYTES, Records
from forebay.content.splitting.skeleton import depth_beyond
from forebay.texts import DECODER

AT_ONCE = 100_000
"""How many places are Python's numbers at a time."""

Reason = tuple[RecordReason, str]

# Only what is wrong with a text is wanted, so numbers stay text.


@dataclass(frozen=True, slots=True)
class Elements:
    """The position of each record in its exploded array, and the number of that array's name, in JSON; -1 for a
    record outside of all arrays."""

    ordinals: Any
    arrays: Any
    names: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Split:
    """Where the records are, ascending, and which were refused. `tight`: between two records is only white space. `parents` are
    numbers of their `surroundings`, -1 where a record has none."""

    starts: Any
    ends: Any
    lines: Any
    refused: list[Refused]
    line_count: int
    tight: bool
    parents: Any = None
    surroundings: Sequence[bytes] = ()
    elements: Elements | None = None

    @property
    def bytes_around(self) -> int:
        """The total bytes of the surroundings that records get."""
        if self.parents is None:
            return 0
        lengths = np.array([*map(len, self.surroundings), 0], np.int64)
        return int(lengths[self.parents].sum())


def vetted(text: bytes, records: Records, limits: Limits) -> Split:
    """The records, without those that are refused."""
    starts, ends, lines = records.starts, records.ends, records.lines
    _refuse_too_many(len(starts) > limits.max_records, "too-many-records", limits.max_records)
    why: dict[int, Reason] = {}
    for n, reason in _reasons(text, starts, ends, limits):
        why.setdefault(n, reason)
        _refuse_too_many(len(why) + len(records.leftovers) > limits.max_refused, "too-many-refused", limits.max_refused)
    _refuse_too_many(len(records.leftovers) > limits.max_refused, "too-many-refused", limits.max_refused)
    refused = [Refused(a, b, line, *why_no_record(text[a:b], limits)) for a, b, line in records.leftovers]
    if not why:
        return Split(
            starts, ends, lines, refused, records.line_count, records.tight, records.parents, records.surroundings
        )
    refused += [Refused(int(starts[n]), int(ends[n]), int(lines[n]), *why[n]) for n in why]
    taken = np.ones(len(starts), np.bool_)
    taken[list(why)] = False
    in_order = sorted(refused, key=lambda r: r.start)
    parents = None if records.parents is None else records.parents[taken]
    return Split(
        starts[taken], ends[taken], lines[taken], in_order, records.line_count, False, parents, records.surroundings
    )


def _refuse_too_many(is_so: bool, reason: FileReason, most: int) -> None:
    if is_so:
        raise TooMany(reason, f"{most} is the limit")


def _reasons(text: bytes, starts: Any, ends: Any, limits: Limits) -> Iterator[tuple[int, Reason]]:
    """Which records are refused, and why."""
    for n in np.flatnonzero(ends - starts > limits.max_record_bytes).tolist():
        yield n, ("record-too-large", f"{ends[n] - starts[n]} bytes, and {limits.max_record_bytes} is the limit")
    for n, depth in _too_deep(text, starts, ends, limits):
        yield n, ("too-deep", f"nested {depth} levels deep, and {limits.max_depth} is the limit")
    for n, detail in _not_utf8(text, starts, ends):
        yield n, ("not-utf8", detail)


def why_no_record(part: bytes, limits: Limits) -> Reason:
    """The reason for a part of a text that is not an object, or not JSON."""
    if len(part) > limits.max_record_bytes:
        return "record-too-large", f"more than {limits.max_record_bytes} bytes without the end of a record"
    if len(part) > SHORT_BYTES:
        return "not-json", "its brackets or quotes do not close"
    if b"\0" in part:
        return "not-json", "it contains NUL bytes"
    if part == b"[":
        return "torn-array", "the array that begins here never closes: the file ends before it does"
    try:
        value = DECODER.decode(part.decode("latin-1"))
    except ValueError as error:
        return "not-json", str(error)
    except RecursionError:
        return "not-an-object", "brackets nested very deep, and no object around them"
    return "not-an-object", f"a JSON {_KINDS.get(type(value), 'value')}"


def is_value(part: bytes) -> bool:
    """Whether it is JSON, but not an object."""
    return len(part) <= SHORT_BYTES and why_no_record(part, Limits())[0] == "not-an-object"


_KINDS = {list: "array", str: "string or number", bool: "boolean", type(None): "null"}


def _too_deep(text: bytes, starts: Any, ends: Any, limits: Limits) -> Iterator[tuple[int, int]]:
    """A record of n levels has n opening brackets and n closing ones, so nearly all records need no closer check."""
    long = np.flatnonzero((ends - starts > 2 * limits.max_depth) & (ends - starts <= limits.max_record_bytes))
    for n, start, end in zip(long.tolist(), starts[long].tolist(), ends[long].tolist(), strict=True):
        if depth := depth_beyond(text[start:end], limits.max_depth):
            yield n, depth


def _not_utf8(text: bytes, starts: Any, ends: Any) -> Iterator[tuple[int, str]]:
    if _is_utf8(text):
        return
    for first in range(0, len(starts), AT_ONCE):
        some = slice(first, first + AT_ONCE)
        for n, (start, end) in enumerate(zip(starts[some].tolist(), ends[some].tolist(), strict=True), first):
            try:
                text[start:end].decode()
            except UnicodeDecodeError as error:
                yield n, f"{error.reason} {text[start + error.start]:#04x} at byte {error.start} of the record"


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        whole = pa.py_buffer(np.array([0, len(text)], np.int32))
        pa.StringArray.from_buffers(1, whole, pa.py_buffer(text)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
