"""Records of a task on their way to Spark's SQL, and back with the answers.

In: parcels. Out: rows that Spark can ask about, the first of each parcel with the parcel itself; then, of the same rows in the
same order, the parcels with the answers. Rows of one task stay in order: nothing between the two moves them.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.one_pass.columns import read_columns
from forebay.batch.one_pass.gathering import OfTable, Parcel, packed, unpacked
from forebay.batch.one_pass.landed import Landed
from forebay.batch.one_pass.questions import DECLARED, PARCEL
from forebay.batch.one_pass.rows import Block
from forebay.batch.one_pass.told import Told
from forebay.record.conform import Records

if TYPE_CHECKING:
    from forebay.batch.one_pass.task import ReadTask

__all__ = ["AnswersTask", "QuestionsTask"]


@dataclass(frozen=True)
class QuestionsTask:
    """Reads, and asks. Its input is a row for each task: its number, and the pieces that it reads."""

    read: ReadTask

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        asking = Asking(self.read.told)
        for batch in batches:
            for one in batch.to_pylist():
                for sent in self.read(one["number"], [pickle.loads(one["pieces"])]):
                    yield from asking.rows_of(sent)


class Asking:
    """Of one task."""

    def __init__(self, told: Told) -> None:
        self.told, self.landed = told, Landed(told.pieces, told.service)

    def rows_of(self, sent: tuple[int, Parcel]) -> Iterator[pa.RecordBatch]:
        parcel = sent[1]
        made = self._given(parcel) if isinstance(parcel, OfTable) else {}
        count = len(next(iter(made.values()))) if made else 1
        made[PARCEL] = pa.concat_arrays([pa.array([pickle.dumps(sent)]), pa.nulls(count - 1, pa.binary())])
        schema = self.told.asked
        columns = [made[f.name] if f.name in made else pa.nulls(count, f.type) for f in schema]
        yield from pa.table(columns, schema=schema).to_batches()

    def _given(self, parcel: OfTable) -> dict[str, pa.Array]:
        """The columns that Spark needs for these rows; none where it is not asked about them."""
        question = self.told.questions.of.get(parcel.declared)
        if question is None:
            return {}
        table = self.told.service.tables[parcel.declared]
        block = unpacked(parcel.records)
        shaping = self.told.place(parcel.table, parcel.declared).shaping
        assert shaping is not None
        records = Records(block.rows["value"].combine_chunks(), shaping.rules, None, block.whole, shaped=False)
        read = read_columns(records, block.rows["piece"].combine_chunks(), table, self.landed)
        made = {
            slot: read.bucketed(one.column) if one.bucketed else read.columns[one.column]
            for slot, one in question.given.items()
        }
        made[DECLARED] = pa.repeat(pa.scalar(parcel.declared, pa.int32()), len(records.texts))
        return made


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
        if isinstance(parcel, OfTable) and parcel.declared in self.told.questions.of:
            parcel = replace(parcel, answers=packed(Block(pa.concat_tables(rows).drop_columns([PARCEL]))))
        return writer, parcel
