"""The rows that leave this room, and what their columns mean: the contract with the batch.

| column | a document | a refused record | a piece's end, exactly one each |
| --- | --- | --- | --- |
| `piece` | the number of the piece | the same | the same |
| `line` | from 1, counted in the piece | the same | null |
| `byte_offset` | where it begins, in the file's expanded bytes; of Parquet its row, from 0 | the same | null |
| `value` | the document; white space may follow it | its text, up to `raw_bytes` | the rest of `PieceEnd` |
| `problem` | null | one of `RECORD_REASONS` | null, or one of `FILE_REASONS` |
| `detail` | null | for a person | null, or for a person |
| `metadata` | the object's, as JSON, where it is asked for; else null | the same | the same |

The file and `byte_offset` are the identity of a record, everywhere. No two records of a file begin at the same byte, and
pieces do not change it. `line` is for people; many records may share one.

A document begins with `{` and ends with `}`. Not-UTF-8 bytes of refused text are written `\\xNN`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.content.added import own_renamed, with_fields
from forebay.content.encoding import Located
from forebay.content.end import PieceEnd
from forebay.content.formats.json_text import spelt
from forebay.content.outcome import Refused, kept_text
from forebay.content.vetting import Elements, Split
from forebay.declaration.form import EXPLODED, ORDINAL, PARENT

SCHEMA = pa.schema(
    [
        ("piece", pa.int32()),
        ("line", pa.int64()),
        ("byte_offset", pa.int64()),
        ("value", pa.string()),
        ("problem", pa.string()),
        ("detail", pa.string()),
        ("metadata", pa.string()),
    ]
)

Item = TypeVar("Item")

MEMBER = "@member"
_PARENT, _MARKS = spelt(PARENT) + b":", f'"{ORDINAL}":%d,"{EXPLODED}":%s'.encode()
BATCH_ROWS, BATCH_BYTES = 20_000, 8 << 20


def document_batches(piece: Any, records: Split, text: Located) -> Iterator[pa.RecordBatch]:
    """The records, in batches that are neither too many rows nor too many bytes. Each may have a `piece` of its own."""
    count = len(records.starts)
    if not count:
        return
    columns = [
        pa.array(np.full(count, piece, np.int32)),
        pa.array(records.lines.astype(np.int64, copy=False)),
        pa.array(text.offsets(records.starts).astype(np.int64, copy=False)),
        *[pa.nulls(count, pa.string())] * 4,
    ]
    everything = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    if records.parents is not None:
        yield from _with_surroundings(everything, records, text.utf8)
        return
    for first, stop in _slices(records.starts):
        values = _values(text.utf8, records.starts[first:stop], records.ends[first:stop], tight=records.tight)
        yield _with_values(everything.slice(first, stop - first), values)


def _with_surroundings(rows: pa.RecordBatch, records: Split, utf8: bytes) -> Iterator[pa.RecordBatch]:
    """Rows with composed values, a batch at a time: each contains the surroundings of its record."""
    lengths = np.array([*map(len, records.surroundings), 0], np.int64)
    sizes = records.ends - records.starts + lengths[records.parents]
    parents = [_PARENT + one for one in records.surroundings]
    for first, stop in _slices(np.cumsum(sizes)):
        places = zip(*(a[first:stop].tolist() for a in (records.starts, records.ends, records.parents)), strict=True)
        values = [
            utf8[start:end] if parent < 0 else with_fields(utf8[start:end], (PARENT,), parents[parent])
            for start, end, parent in places
        ]
        if records.elements is not None:
            values = _marked(values, records.elements, first)
        yield _with_values(rows.slice(first, stop - first), pa.array(values, pa.binary()).cast(pa.string()))


def _with_values(rows: pa.RecordBatch, values: Any) -> pa.RecordBatch:
    return rows.set_column(SCHEMA.get_field_index("value"), "value", values)


def _marked(values: list[bytes], elements: Elements, first: int) -> list[bytes]:
    """Marks the elements of exploded arrays."""
    these = slice(first, first + len(values))
    numbers = zip(elements.ordinals[these].tolist(), elements.arrays[these].tolist(), strict=True)
    return [
        value if ordinal < 0 else with_fields(value, (ORDINAL, EXPLODED), _MARKS % (ordinal, elements.names[array]))
        for value, (ordinal, array) in zip(values, numbers, strict=True)
    ]


def refused_batches(piece: int, refused: list[Refused], text: Located, raw_bytes: int) -> Iterator[pa.RecordBatch]:
    """A row for each refused record, in batches that keep their texts small."""
    view = memoryview(text.utf8)
    offsets = text.offsets(np.array([r.start for r in refused], np.int64)).tolist()
    step = max(1, BATCH_BYTES // raw_bytes)
    for at in range(0, len(refused), step):
        some = refused[at : at + step]
        columns: list[list[Any]] = [
            [piece] * len(some),
            [r.line for r in some],
            offsets[at : at + step],
            [kept_text(view[r.start : r.end], raw_bytes) for r in some],
            [r.reason for r in some],
            [
                _detail(r, f"{text.counts} {begin}", raw_bytes)
                for r, begin in zip(some, offsets[at : at + step], strict=True)
            ],
            [None] * len(some),
        ]
        yield pa.RecordBatch.from_arrays(
            [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
        )


def _detail(refused: Refused, begin: str, raw_bytes: int) -> str:
    """The detail, with the record's size if its text is cut: the rest is in the file, from its byte offset on."""
    size = refused.end - refused.start
    if size <= raw_bytes:
        return refused.detail
    return f"{refused.detail}; of its {size} bytes from {begin} of the content, the first {raw_bytes} are kept"


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an archive: its name, which each of its records keeps, and the offset that is added to their positions."""

    name: str
    base: int


def of_members(rows: Iterator[tuple[pa.RecordBatch, Member]]) -> Iterator[pa.RecordBatch]:
    """The rows of all members. Many members are named at once, because a member may have only one record."""
    for some in _some_at_a_time(rows, lambda one: one[0]):
        yield _named(_one([batch for batch, _ in some]), [(member, batch.num_rows) for batch, member in some])


def _named(batch: pa.RecordBatch, members: Sequence[tuple[Member, int]]) -> pa.RecordBatch:
    """This many rows of each member. Documents get the field `@member`; refused records have the name in their detail."""
    which = pa.array(np.repeat(np.arange(len(members)), [rows for _, rows in members]))
    bases = pa.array([member.base for member, _ in members], pa.int64()).take(which)
    names = pa.array([spelt(member.name) for member, _ in members], pa.binary()).take(which)
    plain_names = pa.array([member.name for member, _ in members], pa.string()).take(which)
    places = pc.add(batch.column("byte_offset"), bases)
    is_refused = batch.column("problem").is_valid()
    detail = pc.binary_join_element_wise(batch.column("detail"), plain_names, "; in ")
    values = _own_renamed(batch.column("value").cast(pa.binary()))
    is_empty = pc.match_substring_regex(values, r"^\{\s*\}")
    comma, rest = pc.if_else(is_empty, b"", pa.scalar(b",")), pc.binary_replace_slice(values, 0, 1, b"")
    named = pc.binary_join_element_wise(b"{" + spelt(MEMBER) + b":", names, comma, rest, b"")
    columns = {
        "byte_offset": places,
        "detail": pc.if_else(is_refused, detail, batch.column("detail")),
        "value": pc.if_else(is_refused, batch.column("value").cast(pa.binary()), named).cast(pa.string()),
    }
    for name, column in columns.items():
        batch = batch.set_column(SCHEMA.get_field_index(name), SCHEMA.field(name), column)
    return batch


def _own_renamed(values: Any) -> Any:
    speaks = pc.match_substring(values, MEMBER)
    if not pc.any(speaks).as_py():
        return values
    renamed = [own_renamed(value, (MEMBER,)) for value in values.filter(speaks).to_pylist()]
    return pc.replace_with_mask(values, speaks, pa.array(renamed, pa.binary()))


def end_batch(*ends: PieceEnd) -> pa.RecordBatch:
    rows = [(end.piece, None, None, end.value(), end.reason, end.detail, None) for end in ends]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def with_metadata(batch: pa.RecordBatch, metadata: str) -> pa.RecordBatch:
    return batch.set_column(len(SCHEMA) - 1, "metadata", pa.repeat(pa.scalar(metadata, pa.string()), batch.num_rows))


def joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: a batch costs as much as a few hundred rows, and small files make small ones."""
    yield from map(_one, _some_at_a_time(batches, lambda batch: batch))


def _some_at_a_time(items: Iterator[Item], batch_of: Callable[[Item], pa.RecordBatch]) -> Iterator[list[Item]]:
    held: list[Item] = []
    rows = size = 0
    for item in items:
        batch = batch_of(item)
        batch_bytes = batch.nbytes
        if held and (rows + batch.num_rows > BATCH_ROWS or size + batch_bytes > BATCH_BYTES):
            yield held
            held, rows, size = [], 0, 0
        held.append(item)
        rows, size = rows + batch.num_rows, size + batch_bytes
    if held:
        yield held


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _values(utf8: bytes, starts: Any, ends: Any, *, tight: bool) -> Any:
    """Where only white space lies between records, each value runs on to the next record, and the text is not copied.
    Otherwise records and the texts between them alternate, and every second one is copied out."""
    if tight:
        borders = np.concatenate((starts, ends[-1:])).astype(np.int32)
        return _strings(utf8, borders)
    borders = np.stack((starts, ends), axis=1).ravel().astype(np.int32)
    return _strings(utf8, borders).take(pa.array(np.arange(0, len(borders), 2)))


def _strings(utf8: bytes, borders: Any) -> Any:
    return pa.StringArray.from_buffers(len(borders) - 1, pa.py_buffer(borders), pa.py_buffer(utf8))


def _slices(starts: Any) -> Iterator[tuple[int, int]]:
    first, count = 0, len(starts)
    while first < count:
        by_bytes = int(np.searchsorted(starts, starts[first] + BATCH_BYTES))
        stop = min(first + BATCH_ROWS, max(by_bytes, first + 1), count)
        yield first, stop
        first = stop
