"""The tasks of a batch in one pass. With few tasks, each writes what it reads. With many, some read and others write, so that
a table gets few files.

In: pieces. Out: an `Answer` of each task that writes. `odd` in it says why Spark must do it; then the files that were written
belong to nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

import pyarrow as pa

from forebay.batch.one_pass.answers import Answer
from forebay.batch.one_pass.asking import Asking
from forebay.batch.one_pass.gathering import Ends, Kept, OfTable, Parcel, Parcels, Refused, Unrouted
from forebay.batch.one_pass.reader import Reading, Sink, read
from forebay.batch.one_pass.told import TASK_BYTES, Told
from forebay.batch.one_pass.writer import Writer
from forebay.content.ceiling import ceiling
from forebay.content.piece import Piece
from forebay.record.typed import NotOrdinary
from forebay.spark.python_worker import spare_repeats
from forebay.table.upload import Uploads

__all__ = ["GatherTask", "ReadTask", "Task"]

ODD = (NotOrdinary, MemoryError, pa.ArrowException)
ROOM = 8
"""A byte of text that waits takes up to this many, with its parsed form and its data file."""


@dataclass(frozen=True)
class Task:
    """Reads, and writes the records that it reads."""

    told: Told

    def __call__(self, hands: Iterable[list[Piece]]) -> Iterator[Answer]:
        for pieces in hands:
            with ceiling(self.told.limits.task_memory_bytes + ROOM * TASK_BYTES):
                yield self.done(pieces)

    def done(self, pieces: list[Piece]) -> Answer:
        spare_repeats()
        with Uploads(self.told.storage.put) as uploads:
            writer = Writer(self.told, uploads)
            try:
                read(self.told, pieces, writer)
                answer = writer.finish()
                answer.ends = list(writer.ends.values())
            except ODD as odd:
                answer = _given_up(writer, uploads, odd)
            return answer


@dataclass(frozen=True)
class ReadTask:
    """Reads, and sends the records to the tasks that write. `readers` and `writers` count the tasks."""

    told: Told
    readers: int
    writers: int

    def __call__(self, number: int, hands: Iterable[list[Piece]]) -> Iterator[tuple[int, Parcel]]:
        for pieces in hands:
            asking = Asking(self.told)
            if self.told.conditions:
                sink = Parcels(number, self.readers, self.readers, asking.refused, asking.unrouted, [number])
            else:
                sink = Parcels(number, self.readers, self.writers, asking.asked)
            yield from self.sent(sink, partial(read, self.told, pieces))

    def routed(self, parcels: Iterable[tuple[int, Parcel]]) -> Iterator[tuple[int, Parcel]]:
        """Records that were read, once Spark has said which declarations want them."""
        waiting = iter(parcels)
        if (first := next(waiting, None)) is not None:
            sink = Parcels(first[0], self.readers, self.writers, Asking(self.told).asked)
            yield from self.sent(sink, partial(_route, self.told, chain([first], waiting)))

    def sent(self, sink: Parcels, feed: Callable[[Parcels], None]) -> Iterator[tuple[int, Parcel]]:
        with ceiling(self.told.limits.task_memory_bytes + ROOM * TASK_BYTES):
            spare_repeats()
            try:
                feed(sink)
                sent = list(sink.finish())
            except ODD as odd:
                yield sink.task, Refused(f"{type(odd).__name__}: {odd}")
                return
            yield from sent


def _route(told: Told, parcels: Iterable[tuple[int, Parcel]], sink: Sink) -> None:
    reading = Reading(told, told.pieces, sink)
    for _, parcel in parcels:
        if isinstance(parcel, Refused):
            raise NotOrdinary(parcel.why)
        if isinstance(parcel, Unrouted):
            reading.route(parcel.block)
        elif isinstance(parcel, Ends):
            for end in parcel.ends:
                sink.end(end)
        else:
            _hand_over(parcel, sink)


@dataclass(frozen=True)
class GatherTask:
    """Writes the records that others read, or, `alone`, those of one other task."""

    told: Told
    alone: bool = False

    def __call__(self, parcels: Iterable[tuple[int, Parcel]]) -> Iterator[Answer]:
        mine = [parcel for _, parcel in parcels]
        if refused := [parcel.why for parcel in mine if isinstance(parcel, Refused)]:
            yield Answer(odd=refused[0])
            return
        reads = [parcel for parcel in mine if isinstance(parcel, Ends)]
        ends, runs = [end for one in reads for end in one.ends], frozenset((one.task, one.run) for one in reads)
        if len(ends) < len(self.told.pieces) and not self.alone:
            yield Answer(odd="a task did not read its files to the end")
            return
        spare_repeats()
        with Uploads(self.told.storage.put) as uploads:
            writer = Writer(self.told, uploads)
            try:
                writer.end_all(ends)
                while mine:
                    _hand_over(mine.pop(), writer)
                    writer.write_large()
                    writer.rest()
                answer = writer.finish()
            except ODD as odd:
                answer = _given_up(writer, uploads, odd)
            answer.ends, answer.runs = ends, runs
            yield answer


def _hand_over(parcel: Parcel, sink: Sink) -> None:
    if isinstance(parcel, OfTable):
        sink.take(parcel.table, parcel.declared, parcel.block)
    elif isinstance(parcel, Kept):
        rows = parcel.block.rows
        arrays = {name: rows[name] for name in rows.column_names if name.startswith("said_")}
        said = {name.removeprefix("said_"): array for name, array in arrays.items()}
        sink.keep(parcel.place, rows, **parcel.said, **said)


def _given_up(writer: Writer, uploads: Uploads, odd: Exception) -> Answer:
    answer = writer.answer
    answer.files += uploads.finish()
    answer.odd = f"{type(odd).__name__}: {odd}"
    return answer
