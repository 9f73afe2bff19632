"""Records of a task on their way to Spark's SQL, and back with the answers.

In: parcels. Out: rows for Spark's SQL, the first of each parcel with the parcel itself; then, from the same rows in the same
order, the parcels with the answers. Rows of one task stay in order: nothing in between moves them.
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
from forebay.batch.one_pass.rows import Block
from forebay.batch.one_pass.spec import PassSpec
from forebay.batch.one_pass.vault import without_originals
from forebay.declared_sql.columns import rules_of
from forebay.declared_sql.questions import DECLARED, PARCEL, Given, Question, Questions
from forebay.record.conform import Records
from forebay.record.growth import Rules
from forebay.record.transform import REFUSED, Transform, refused_of
from forebay.transforms import NoFunction

Batches = Iterable[pa.RecordBatch]
Parcelled = Callable[[Batches], Iterator[tuple[int, Parcel]]]
"""Makes parcels of the rows of one task, each with the number of the task that writes it."""


def sent(made: Parcelled, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The parcels as rows. Spark is asked nothing about them."""
    return map(_row_of, made(batches))


def _row_of(sent: tuple[int, Parcel]) -> pa.RecordBatch:
    writer, parcel = sent
    return pa.record_batch(
        [pa.array([writer], pa.int32()), pa.array([pickle.dumps(parcel)], pa.binary())], ["writer", PARCEL]
    )


def parcels_of(batches: Batches) -> Iterator[tuple[int, Parcel]]:
    """The parcels that `sent` or `with_answers` returned."""
    for batch in batches:
        for one in batch.to_pylist():
            yield one["writer"], pickle.loads(one[PARCEL])


@dataclass(frozen=True)
class QuestionsTask:
    """The parcels of another task, with the columns that Spark is asked about. `schema` is that of the rows."""

    schema: pa.Schema
    made: Parcelled

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for writer, parcel in self.made(batches):
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
        columns = [made[f.name] if f.name in made else pa.nulls(count, f.type) for f in self.schema]
        yield from pa.table(columns, schema=self.schema).to_batches()


class Asking:
    """The columns of records that Spark is asked about, in one task."""

    def __init__(self, spec: PassSpec) -> None:
        self.spec, self.landed = spec, Landed(spec.pieces, spec.service)

    def asked(self, block: Block, name: str | None, declared: int | None) -> tuple[Block, pa.Table | None]:
        """None where Spark is not asked about these records. Their original values are sent once, to be encrypted."""
        question = None if declared is None else self.spec.questions.of.get(declared)
        given: dict[str, Any] = {}
        if name is not None and declared is not None and question is not None:
            shaping = self.spec.place(name, declared).shaping
            assert shaping is not None
            block, given = self.of_table(block, shaping.rules, declared, question)
        return self._encrypted(block, given, self.spec.questions)

    def unrouted(self, block: Block) -> tuple[Block, pa.Table | None]:
        """The same of records whose table is not known: each declaration with `where_sql` may want them."""
        given: dict[str, Any] = {}
        for number, question in self.spec.conditions.of.items():
            given |= self.given(block, rules_of(question.table), number, question)
        return self._encrypted(block, given, self.spec.conditions)

    def refused(self, block: Block, name: str | None, declared: int | None) -> tuple[Block, pa.Table | None]:
        """The same of records that no table gets."""
        return self._encrypted(block, {}, self.spec.conditions)

    def _encrypted(self, block: Block, given: dict[str, Any], questions: Questions) -> tuple[Block, pa.Table | None]:
        if questions.encrypts:
            rows, originals = without_originals(block.rows, self.spec.service.name)
            block, given = Block(rows, block.whole), given | originals
        return block, pa.table(given) if given else None

    def of_table(self, block: Block, rules: Rules, declared: int, question: Question) -> tuple[Block, dict[str, Any]]:
        """Adds to the records why the function of their table refuses them. It is called again where they are written, and may
        be in time there."""
        transform = self.spec.transform_of(declared)
        if transform is None:
            return block, self.given(block, rules, declared, question)
        try:
            read = self.read(block, rules, question, transform)
            rows = block.rows.append_column(REFUSED, read.refused)
        except NoFunction as why:
            read, rows = self.read(block, rules, question), refused_of(block.rows, str(why))
        return Block(rows, block.whole), self.values(read, block, declared, question)

    def given(self, block: Block, rules: Rules, declared: int, question: Question) -> dict[str, Any]:
        return self.values(self.read(block, rules, question), block, declared, question)

    def read(self, block: Block, rules: Rules, question: Question, transform: Transform | None = None) -> ReadColumns:
        records = Records(block.rows["value"].combine_chunks(), rules, None, block.whole, shaped=False)
        return read_columns(records, block.rows, question.table, self.landed, transform=transform)

    def values(self, read: ReadColumns, block: Block, declared: int, question: Question) -> dict[str, Any]:
        made = {slot: self._values(one, read, block.rows) for slot, one in question.given.items()}
        return {DECLARED: pa.repeat(pa.scalar(declared, pa.int32()), block.rows.num_rows), **made}

    def _values(self, given: Given, read: ReadColumns, rows: pa.Table) -> pa.Array:
        if given.kind == "text":
            return read.texts[given.column]
        if given.kind == "landed":
            return self.landed.landed_at(rows["piece"].combine_chunks())
        return read.bucketed(given.column) if given.kind == "bucketed" else read.columns[given.column]


def with_answers(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Each parcel, with the answers for its rows."""
    return map(_row_of, _answered(batches))


def _answered(batches: Batches) -> Iterator[tuple[int, Parcel]]:
    waiting: list[pa.Table] = []
    for batch in batches:
        rows = pa.Table.from_batches([batch])
        starts = np.flatnonzero(np.asarray(pc.is_valid(rows[PARCEL]))).tolist()
        before = 0
        for start in starts:
            waiting += [rows.slice(before, start - before)] if start > before else []
            if waiting:
                yield _with_answers(waiting)
            waiting, before = [], start
        waiting.append(rows.slice(before))
    if waiting:
        yield _with_answers(waiting)


def _with_answers(rows: list[pa.Table]) -> tuple[int, Parcel]:
    writer, parcel = pickle.loads(rows[0][PARCEL][0].as_py())
    if isinstance(parcel, Sent) and parcel.is_asked:
        parcel = replace(parcel, answers=packed(Block(pa.concat_tables(rows).drop_columns([PARCEL]))))
    return writer, parcel
