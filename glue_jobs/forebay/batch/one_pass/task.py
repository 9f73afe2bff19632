"""The tasks of a batch in one pass. With few tasks, each writes what it reads. With many, some read and others write, so that
a table gets few files.

In: pieces. Out: an `Answer` of each task that writes. Its `odd` says why it gave up; the files that it wrote then belong to
nobody.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from tempfile import SpooledTemporaryFile

import pyarrow as pa

from forebay.batch.one_pass.answers import Answer
from forebay.batch.one_pass.asking import Asking, Batches, parcels_of
from forebay.batch.one_pass.gathering import Ends, Kept, OfTable, Parcel, Parcels, Refused, Unrouted
from forebay.batch.one_pass.reader import NoRoom, Reading, Sink, read, read_held
from forebay.batch.one_pass.spec import TASK_BYTES, PassSpec
from forebay.batch.one_pass.writer import Writer
from forebay.content.ceiling import ceiling
from forebay.content.piece import Piece
from forebay.record.typed import NotOrdinary
from forebay.spark.python_worker import spare_repeats
from forebay.table.data_files.upload import Uploads

ODD = (NotOrdinary, MemoryError, pa.ArrowException)
CROWDED = (NoRoom, MemoryError, pa.ArrowException)
"""Errors that less data at once may avoid. An Arrow array holds at most 2 GB of text."""
ROOM = 8
"""A byte of text that waits takes up to this many, with its parsed form and its data file."""
SPOOL_BYTES = TASK_BYTES
"""The bytes of parcels in memory that wait for the last one. More are stored on disk."""


@dataclass(frozen=True)
class Task:
    """Reads, and writes the records that it reads."""

    spec: PassSpec

    def __call__(self, hands: Iterable[list[Piece]]) -> Iterator[Answer]:
        for pieces in hands:
            with ceiling(self.spec.limits.task_memory_bytes + ROOM * TASK_BYTES):
                yield self.done(pieces)

    def done(self, pieces: list[Piece]) -> Answer:
        spare_repeats()
        with Uploads(self.spec.storage.put) as uploads:
            writer = Writer(self.spec, uploads)
            try:
                for _ in read(self.spec, pieces, writer):
                    pass
                answer = writer.finish()
                answer.ends = list(writer.ends.values())
            except ODD as odd:
                answer = _given_up(writer, uploads, odd)
            return answer


@dataclass(frozen=True)
class ReadTask:
    """Reads, and sends the records to the tasks that write. `readers` and `writers` count the tasks. Ends are sent last, so
    a task that gave up has sent none."""

    spec: PassSpec
    readers: int
    writers: int

    def __call__(self, number: int, hands: Iterable[list[Piece]]) -> Iterator[tuple[int, Parcel]]:
        for pieces in hands:
            yield from self.sent(self.sink(number), partial(read, self.spec, pieces))

    def of_pieces(self, batches: Batches) -> Iterator[tuple[int, Parcel]]:
        """The same of rows that have a task's number and its pieces."""
        for batch in batches:
            for one in batch.to_pylist():
                yield from self(one["number"], [pickle.loads(one["pieces"])])

    def of_held(self, batches: Batches) -> Iterator[tuple[int, Parcel]]:
        """The same of rows of records that were held."""
        from pyspark import TaskContext

        task = TaskContext.get()
        sink = self.sink(0 if task is None else task.partitionId())
        yield from self.sent(sink, partial(read_held, self.spec, batches))

    def of_parcels(self, batches: Batches) -> Iterator[tuple[int, Parcel]]:
        """The same of rows with parcels whose records have no table yet."""
        return self.routed(parcels_of(batches))

    def sink(self, number: int) -> Parcels:
        asking = Asking(self.spec)
        if self.spec.conditions:
            return Parcels(number, self.readers, self.readers, asking.refused, asking.unrouted, [number])
        return Parcels(number, self.readers, self.writers, asking.asked)

    def routed(self, parcels: Iterable[tuple[int, Parcel]]) -> Iterator[tuple[int, Parcel]]:
        """Records that were read, once Spark has said which declarations want them."""
        waiting = iter(parcels)
        if (first := next(waiting, None)) is not None:
            sink = Parcels(first[0], self.readers, self.writers, Asking(self.spec).asked)
            yield from self.sent(sink, partial(_route, self.spec, chain([first], waiting)))

    def sent(self, sink: Parcels, feed: Callable[[Parcels], Iterator[None]]) -> Iterator[tuple[int, Parcel]]:
        with ceiling(self.spec.limits.task_memory_bytes + ROOM * TASK_BYTES):
            spare_repeats()
            try:
                for _ in feed(sink):
                    yield from sink.ready()
                yield from sink.finish()
            except ODD as odd:
                yield sink.task, Refused(_why(odd), isinstance(odd, CROWDED))


def _route(spec: PassSpec, parcels: Iterable[tuple[int, Parcel]], sink: Sink) -> Iterator[None]:
    reading = Reading(spec, spec.pieces, sink)
    for _, parcel in parcels:
        if isinstance(parcel, Refused):
            raise _refusal(parcel)
        if isinstance(parcel, Unrouted):
            reading.route(parcel.block)
        elif isinstance(parcel, Ends):
            for end in parcel.ends:
                sink.end(end)
        else:
            _hand_over(parcel, sink)
        yield


@dataclass(frozen=True)
class GatherTask:
    """Writes the records that others read, or, `alone`, those of one other task. Where it does not know before which pieces
    land, the records wait for all ends."""

    spec: PassSpec
    alone: bool = False

    def __call__(self, parcels: Iterable[tuple[int, Parcel]]) -> Iterator[Answer]:
        spare_repeats()
        reads: list[Ends] = []
        with Uploads(self.spec.storage.put) as uploads:
            writer = Writer(self.spec, uploads)
            try:
                for parcel in self._once_ends_are_known(_records(parcels, reads), reads, writer):
                    _hand_over(parcel, writer)
                    writer.write_large()
                    writer.rest()
                self._must_be_as_before(reads)
                answer = writer.finish()
            except ODD as odd:
                answer = _given_up(writer, uploads, odd)
            answer.ends = [end for one in reads for end in one.ends]
            answer.runs = frozenset((one.task, one.run) for one in reads)
            yield answer

    def _once_ends_are_known(self, records: Iterator[Parcel], reads: list[Ends], writer: Writer) -> Iterator[Parcel]:
        if self.spec.ends:
            writer.end_all(self.spec.ends)
            return records
        records = _spooled(records)
        ends = [end for one in reads for end in one.ends]
        if len(ends) < len(self.spec.pieces) and not self.alone:
            raise NotOrdinary("a task did not read its files to the end")
        writer.end_all(ends)
        return records

    def _must_be_as_before(self, reads: list[Ends]) -> None:
        before = {end.piece: end for end in self.spec.ends}
        for end in (end for one in reads for end in one.ends if before):
            if not end.reads_like(before[end.piece]):
                (piece,) = (piece for piece in self.spec.pieces if piece.number == end.piece)
                raise NotOrdinary(f"{piece.file.uri} gave different records when it was read again")


def _records(parcels: Iterable[tuple[int, Parcel]], reads: list[Ends]) -> Iterator[Parcel]:
    """The parcels with records. The others are put into `reads`, or are an error."""
    for _, parcel in parcels:
        if isinstance(parcel, Refused):
            raise _refusal(parcel)
        if isinstance(parcel, Ends):
            reads.append(parcel)
        else:
            yield parcel


def _spooled(parcels: Iterator[Parcel]) -> Iterator[Parcel]:
    """The same, once all of them are there. Many wait on disk."""
    spool, count = SpooledTemporaryFile(SPOOL_BYTES), 0  # noqa: SIM115
    for parcel in parcels:
        pickle.dump(parcel, spool)
        count += 1
    spool.seek(0)
    return _unspooled(spool, count)


def _unspooled(spool: SpooledTemporaryFile[bytes], count: int) -> Iterator[Parcel]:
    with spool:
        for _ in range(count):
            yield pickle.load(spool)


def _hand_over(parcel: Parcel, sink: Sink) -> None:
    if isinstance(parcel, OfTable):
        sink.take(parcel.table, parcel.declared, parcel.block)
    elif isinstance(parcel, Kept):
        rows = parcel.block.rows
        arrays = {name: rows[name] for name in rows.column_names if name.startswith("fact_")}
        facts = {name.removeprefix("fact_"): array for name, array in arrays.items()}
        sink.keep(parcel.place, rows, **parcel.facts, **facts)


def _given_up(writer: Writer, uploads: Uploads, odd: Exception) -> Answer:
    answer = writer.answer
    answer.files += uploads.finish()
    answer.odd, answer.is_crowded = _why(odd), isinstance(odd, CROWDED)
    return answer


def _why(odd: Exception) -> str:
    return str(odd) if isinstance(odd, NotOrdinary) else f"{type(odd).__name__}: {odd}"


def _refusal(parcel: Refused) -> NotOrdinary:
    return NoRoom(parcel.why) if parcel.is_crowded else NotOrdinary(parcel.why)
