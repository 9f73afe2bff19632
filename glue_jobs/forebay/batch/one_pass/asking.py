"""Records of a task on their way to Spark's SQL, and back with the answers.

In: parcels. Out: rows that Spark can ask about, the first of each parcel with the parcel itself; then, of the same rows in the
same order, the parcels with the answers. Rows of one task stay in order: nothing between the two moves them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.one_pass.columns import ReadColumns, read_columns
from forebay.batch.one_pass.gathering import Parcel, Sent, packed
from forebay.batch.one_pass.landed import Landed
from forebay.batch.one_pass.questions import DECLARED, PARCEL, Given, Question
from forebay.batch.one_pass.rows import Block
from forebay.batch.one_pass.told import Told
from forebay.batch.one_pass.vault import without_originals
from forebay.content.piece import Piece
from forebay.record.conform import Records

__all__ = ["AnswersTask", "Asking", "QuestionsTask"]


@dataclass(frozen=True)
class QuestionsTask:
    """Reads, and asks. Its input is a row for each task: its number, and the pieces that it reads."""

    told: Told
    read: Callable[[int, list[list[Piece]]], Iterator[tuple[int, Parcel]]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for one in batch.to_pylist():
                for writer, parcel in self.read(one["number"], [pickle.loads(one["pieces"])]):
                    yield from self.rows_of(writer, parcel)

    def rows_of(self, writer: int, parcel: Parcel) -> Iterator[pa.RecordBatch]:
        given = None
        if isinstance(parcel, Sent):
            given, parcel = parcel.given, replace(parcel, given=None)
        count = 1 if given is None else given.num_rows
        texts = pa.concat_arrays([pa.array([pickle.dumps((writer, parcel))]), pa.nulls(count - 1, pa.binary())])
        made: dict[str, Any] = {PARCEL: texts}
        if given is not None:
            made |= dict(zip(given.column_names, given.columns, strict=True))
        schema = self.told.asked
        columns = [made[f.name] if f.name in made else pa.nulls(count, f.type) for f in schema]
        yield from pa.table(columns, schema=schema).to_batches()


class Asking:
    """The columns of records that Spark is asked about, in one task."""

    def __init__(self, told: Told) -> None:
        self.told, self.landed = told, Landed(told.pieces, told.service)

    def asked(self, block: Block, name: str | None, declared: int | None) -> tuple[Block, pa.Table | None]:
        """None where Spark is not asked about these records. Their original values are sent once, to be encrypted."""
        question = None if declared is None else self.told.questions.of.get(declared)
        given: dict[str, Any] = {}
        if name is not None and declared is not None and question is not None:
            given = self.given(block, name, declared, question)
        if self.told.questions.encrypts:
            rows, originals = without_originals(block.rows, self.told.service.name)
            block, given = Block(rows, block.whole), given | originals
        return block, pa.table(given) if given else None

    def given(self, block: Block, name: str, declared: int, question: Question) -> dict[str, Any]:
        table, shaping = self.told.service.tables[declared], self.told.place(name, declared).shaping
        assert shaping is not None
        records = Records(block.rows["value"].combine_chunks(), shaping.rules, None, block.whole, shaped=False)
        read = read_columns(records, block.rows, table, self.landed)
        made = {slot: self._values(one, read, block.rows) for slot, one in question.given.items()}
        return {DECLARED: pa.repeat(pa.scalar(declared, pa.int32()), block.rows.num_rows), **made}

    def _values(self, given: Given, read: ReadColumns, rows: pa.Table) -> pa.Array:
        if given.kind == "text":
            return read.texts[given.column]
        if given.kind == "landed":
            return self.landed.landed_at(rows["piece"].combine_chunks())
        return read.bucketed(given.column) if given.kind == "bucketed" else read.columns[given.column]


@dataclass(frozen=True)
class AnswersTask:
    """Each parcel, with the answers for its rows."""

    told: Told

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for writer, parcel in self.parcels(batches):
            yield pa.record_batch(
                [pa.array([writer], pa.int32()), pa.array([pickle.dumps(parcel)], pa.binary())], ["writer", PARCEL]
            )

    def parcels(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Parcel]]:
        waiting: list[pa.Table] = []
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            starts = np.flatnonzero(np.asarray(pc.is_valid(rows[PARCEL]))).tolist()
            before = 0
            for start in starts:
                waiting += [rows.slice(before, start - before)] if start > before else []
                if waiting:
                    yield self._with_answers(waiting)
                waiting, before = [], start
            waiting.append(rows.slice(before))
        if waiting:
            yield self._with_answers(waiting)

    def _with_answers(self, rows: list[pa.Table]) -> tuple[int, Parcel]:
        writer, parcel = pickle.loads(rows[0][PARCEL][0].as_py())
        if isinstance(parcel, Sent) and parcel.is_asked:
            parcel = replace(parcel, answers=packed(Block(pa.concat_tables(rows).drop_columns([PARCEL]))))
        return writer, parcel
