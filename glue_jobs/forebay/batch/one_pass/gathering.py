"""Gathers the records of many tasks by table, so that a table gets few files however many tasks read.

In: the records that one task reads, block by block. Out: parcels, each with the number of the task that writes it. The records
travel as Arrow parsed them, a few megabytes at a time. Every writing task gets the ends of all pieces.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from forebay.batch.one_pass.rows import Block, joined
from forebay.batch.one_pass.spec import Fact
from forebay.content.end import PieceEnd

PARCEL_BYTES = 8 << 20
WRITER_BYTES = 48 << 20
"""The text of a table that one task writes: a table with more is spread over several tasks."""
PARSED = "_parsed"
DEEPEST = 60
"""Levels of a type: Arrow's format takes 64."""


@dataclass(frozen=True, kw_only=True)
class Sent:
    """Records in Arrow's own format. `given` are columns of them that Spark is asked about, and `answers` what it answers."""

    records: bytes
    given: pa.Table | None = None
    is_asked: bool = False
    answers: bytes | None = None

    @property
    def block(self) -> Block:
        block = unpacked(self.records)
        if self.answers is None:
            return block
        rows, answers = block.rows, unpacked(self.answers).rows
        for name in answers.column_names:
            rows = rows.append_column(name, answers[name])
        return Block(rows, block.whole)


@dataclass(frozen=True, kw_only=True)
class OfTable(Sent):
    table: str
    declared: int


@dataclass(frozen=True, kw_only=True)
class Kept(Sent):
    """Records that are kept beside the tables, and the reasons for that."""

    place: str
    facts: dict[str, Fact]


@dataclass(frozen=True, kw_only=True)
class Unrouted(Sent):
    """Records whose table depends on the answers."""


@dataclass(frozen=True)
class Ends:
    """The ends of the pieces that one task read. A repeated task has another `run`."""

    task: int
    run: str
    ends: tuple[PieceEnd, ...]


@dataclass(frozen=True)
class Refused:
    """A task gave up. `is_crowded`: for too little memory."""

    why: str
    is_crowded: bool


Parcel = OfTable | Kept | Unrouted | Ends | Refused


Asked = Callable[[Block, str | None, int | None], tuple[Block, pa.Table | None]]
"""Takes records, and their table and declaration if they have one. Gives the records to send, and the columns for Spark."""


@dataclass
class Parcels:
    """The parcels of one reading task, for all writing tasks."""

    task: int
    readers: int
    writers: int
    asked: Asked = lambda block, table, declared: (block, None)
    asked_unrouted: Callable[[Block], tuple[Block, pa.Table | None]] = lambda block: (block, None)
    ends_to: Sequence[int] | None = None
    """The tasks that get the ends of pieces, if not all do that write."""
    _ready: list[tuple[int, Parcel]] = field(default_factory=list)
    _waiting: dict[tuple[str, int], list[Block]] = field(default_factory=dict)
    _bytes: dict[tuple[str, int], int] = field(default_factory=dict)
    _sent: dict[str, int] = field(default_factory=dict)
    _ends: list[PieceEnd] = field(default_factory=list)
    _run: str = field(default_factory=lambda: uuid.uuid4().hex)

    def take(self, table: str, declared: int, block: Block) -> None:
        key = table, declared
        self._waiting.setdefault(key, []).append(block)
        self._bytes[key] = self._bytes.get(key, 0) + block.rows["value"].nbytes
        if self._bytes[key] > PARCEL_BYTES:
            self._send(key)

    def keep(self, place: str, rows: pa.Table, **facts: Fact) -> None:
        if rows.num_rows:
            plain = {name: value for name, value in facts.items() if not isinstance(value, pa.Array | pa.ChunkedArray)}
            for name in facts.keys() - plain.keys():
                rows = _with(rows, f"fact_{name}", facts[name])
            block, given = self.asked(Block(rows), None, None)
            sent = Kept(records=packed(block), given=given, is_asked=given is not None, place=place, facts=plain)
            self._ready.append((self.task % self.writers, sent))

    def take_unrouted(self, block: Block) -> None:
        left, given = self.asked_unrouted(block)
        self._ready.append((self.task, Unrouted(records=packed(left), given=given, is_asked=given is not None)))

    def end(self, end: PieceEnd) -> None:
        self._ends.append(end)

    def rest(self) -> None:
        pass

    def ready(self) -> Iterator[tuple[int, Parcel]]:
        sent, self._ready = self._ready, []
        yield from sent

    def finish(self) -> Iterator[tuple[int, Parcel]]:
        for key in list(self._waiting):
            self._send(key)
        yield from self.ready()
        writers = range(self.writers) if self.ends_to is None else self.ends_to
        yield from ((writer, Ends(self.task, self._run, tuple(self._ends))) for writer in writers)

    def _send(self, key: tuple[str, int]) -> None:
        table, declared = key
        blocks, size = self._waiting.pop(key), self._bytes.pop(key)
        self._sent[table] = self._sent.get(table, 0) + size
        spread = max(1, min(self.writers, self._sent[table] * self.readers // WRITER_BYTES))
        writer = (zlib.crc32(table.encode()) + (self.task + self._sent[table] // PARCEL_BYTES) % spread) % self.writers
        for block in joined(blocks):
            left, given = self.asked(block, table, declared)
            sent = OfTable(
                records=packed(left), given=given, is_asked=given is not None, table=table, declared=declared
            )
            self._ready.append((writer, sent))


def _with(rows: pa.Table, name: str, values: Any) -> pa.Table:
    index = rows.schema.get_field_index(name)
    return rows.append_column(name, values) if index < 0 else rows.set_column(index, name, values)


def packed(block: Block) -> bytes:
    """Packs records into one Arrow stream. Records that are nested too deep for that are parsed again at their destination."""
    rows = block.rows
    if block.whole is not None and depth_of(block.whole.type) < DEEPEST:
        rows = rows.append_column(PARSED, block.whole)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as stream:
        stream.write_table(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def depth_of(kind: pa.DataType) -> int:
    """The levels of an Arrow type: 1 of a plain one."""
    return 1 + max((depth_of(kind.field(at).type) for at in range(kind.num_fields)), default=0)


def unpacked(content: bytes) -> Block:
    with pa.ipc.open_stream(content) as stream:
        rows = stream.read_all().combine_chunks()
    if PARSED not in rows.column_names:
        return Block(rows)
    return Block(rows.drop_columns([PARSED]), rows[PARSED].combine_chunks())
