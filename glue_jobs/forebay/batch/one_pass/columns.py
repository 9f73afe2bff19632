"""The columns of a table's rows that do not come from undeclared fields, and why a row may not be in its table.

In: records of one table, with their pieces and Spark's answers. Out: `Filled`: an array for each declared column, what did not
fit, a reason for each row that is refused, and the expectations that rows violate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.expectations import USUAL_VALUES
from forebay.batch.one_pass.landed import Landed
from forebay.batch.reasons import (
    BAD_PARTITION_VALUE,
    EVENT_IN_THE_FUTURE,
    EVENT_TOO_OLD,
    NO_KEY,
    NO_SEQUENCE,
    TRANSFORM,
)
from forebay.declaration.column import Column
from forebay.declaration.merge import FOLDER_TEXTS
from forebay.declaration.path import parse_path
from forebay.declaration.table import Table
from forebay.declared_sql.day import day_source
from forebay.declared_sql.questions import Question
from forebay.record.arrow_type import arrow_type_of
from forebay.record.conform import Records
from forebay.record.event_time import Times
from forebay.record.number import write_json
from forebay.record.transform import REFUSED, Transform
from forebay.record.typed import converted, typed, with_elements, with_misfits
from forebay.table.data_files.partition import can_be_folder

Bits = Any


@dataclass(frozen=True)
class ReadColumns:
    """The declared columns that Spark need not compute, and the `misfits`: values that did not fit them. `texts` are those of
    times that Spark reads, by column. `refused` says why the table's `transform` refused a row."""

    columns: dict[str, pa.Array]
    misfits: pa.StringArray
    times: Times
    texts: dict[str, pa.StringArray]
    refused: pa.StringArray

    def bucketed(self, name: str) -> pa.Array:
        """The event time for the columns that are computed from it."""
        return self.times.bucketed(self.columns[name])


@dataclass(frozen=True)
class Filled:
    """`refused` has null for each row that may be in its table, and `detail` more about some of the others. `violated` are the
    expectations of the table that a row does not meet, by name."""

    columns: dict[str, pa.Array]
    misfits: pa.StringArray
    refused: pa.StringArray
    detail: pa.StringArray
    violated: dict[str, Bits]

    def only(self, which: pa.BooleanArray) -> Filled:
        return Filled(
            {name: values.filter(which) for name, values in self.columns.items()},
            self.misfits.filter(which),
            self.refused.filter(which),
            self.detail.filter(which),
            {name: bits[np.asarray(which)] for name, bits in self.violated.items()},
        )


def read_columns(
    records: Records,
    rows: pa.Table,
    table: Table,
    landed: Landed,
    answered: Mapping[str, pa.Array] | None = None,
    transform: Transform | None = None,
) -> ReadColumns:
    """`answered` are the times that Spark read by their formats, if it did so already. Rows for which the function was refused
    before stay refused: Spark's answers are about values that it did not change."""
    read = [_as_text(column) for column in table.columns if column.expression is None]
    of_record = [column for column in read if column.of_record]
    made = typed(records, of_record)
    columns = dict(zip([column.name for column in of_record], made.columns, strict=True))
    columns |= {column.name: _of_object(column, landed, rows) for column in read if not column.of_record}
    texts = {column.name: columns.pop(column.name) for column in table.columns if column.formats}
    refused = pa.nulls(rows.num_rows, pa.string())
    if transform is not None:
        done = transform.applied({column.name: columns[column.name] for column in landed.service.transformed(table)})
        columns, refused = columns | done.columns, done.refused
        if REFUSED in rows.column_names:
            refused = pc.coalesce(rows[REFUSED].combine_chunks(), refused)
    columns |= answered or {}
    times = Times(table, columns, landed.landed_at(rows["piece"].combine_chunks()))
    columns |= {
        c.name: times.day_of(source, columns) for c in table.columns if (source := day_source(c, table)) is not None
    }
    return ReadColumns(columns, made.misfits, times, texts, refused)


def _as_text(column: Column) -> Column:
    return column.model_copy(update={"type": "string", "formats": ()}) if column.formats else column


def filled(
    records: Records,
    rows: pa.Table,
    table: Table,
    landed: Landed,
    question: Question | None,
    transform: Transform | None = None,
) -> Filled:
    """`rows` are those of the records, with Spark's answers where there is a `question`."""
    times, derived, checks = (question.times, question.derived, question.checks) if question else ({}, {}, {})
    answers = {name: Answered.of(rows[slot]) for name, slot in derived.items()}
    answered = {name: Answered.of(rows[slot]).values for name, slot in times.items()}
    read = read_columns(records, rows, table, landed, answered, transform)
    unfit = {
        name: np.asarray(pc.and_(pc.is_null(values), pc.is_valid(read.texts[name])))
        for name, values in answered.items()
    }
    misfits = with_misfits(
        records, read.misfits, {c: unfit[c.name] for c in table.columns if c.formats and c.of_record}
    )
    misfits = _with_failed(misfits, {name: one.failed for name, one in answers.items()})
    columns = read.columns | {name: one.values for name, one in answers.items()}
    violated = {name: Answered.of(rows[slot]).is_false for name, slot in checks.items()}
    columns = {column.name: columns[column.name] for column in table.columns}
    refused = _refused(table, columns, read.times, rows.num_rows)
    refused = pc.if_else(pc.is_valid(read.refused), TRANSFORM, refused)
    return Filled(columns, misfits, refused, read.refused, violated)


@dataclass(frozen=True)
class Answered:
    """Spark's answers to one question."""

    values: pa.Array
    failed: Bits
    """It could not be computed."""

    @classmethod
    def of(cls, slot: pa.ChunkedArray) -> Answered:
        answers = slot.combine_chunks()
        return cls(answers.flatten()[0], np.asarray(pc.is_null(answers)))

    @property
    def is_false(self) -> Bits:
        """Null is not false. An answer that could not be computed is."""
        return self.failed | ~np.asarray(pc.fill_null(self.values, True))


def _with_failed(misfits: pa.StringArray, failed: dict[str, Bits]) -> pa.StringArray:
    """The misfits, and null for each column that could not be computed: there is no value of it to keep."""
    more: dict[int, list[str]] = {}
    for name, which in failed.items():
        for row in np.flatnonzero(which).tolist():
            more.setdefault(row, []).append(write_json({name: None}))
    return with_elements(misfits, more)


def _of_object(column: Column, landed: Landed, rows: pa.Table) -> pa.Array:
    """A value that does not fit is null: the record does not hold it."""
    texts = landed.of_object(parse_path(column.source), rows).dictionary_encode()
    values = [converted(text, column) for text in texts.dictionary.to_pylist()]
    return pa.array(values, arrow_type_of(column)).take(texts.indices)


def _refused(table: Table, columns: dict[str, pa.Array], times: Times, rows: int) -> pa.StringArray:
    """The last reason that holds."""
    why = pa.nulls(rows, pa.string())
    for which, reason in _reasons(table, columns, times):
        if which.any():
            why = pc.if_else(pa.array(which), reason, why)
    return why


def _reasons(table: Table, columns: dict[str, pa.Array], times: Times) -> Iterator[tuple[Bits, str]]:
    kinds = {column.name: column.type for column in table.columns}
    for name in table.partitions:
        pattern = table.partition_values.get(name, USUAL_VALUES if kinds[name] == "string" else None)
        if pattern is not None:
            yield _not_like(columns[name], pattern), BAD_PARTITION_VALUE
        if kinds[name] == "string":
            yield _not_so(columns[name], partial(can_be_folder, name)), BAD_PARTITION_VALUE
    if times.when is not None and times.when.outside == "quarantine":
        yield times.too_new, EVENT_IN_THE_FUTURE
        yield times.too_old, EVENT_TOO_OLD
    if table.merge is not None:
        yield _any_null([columns[name] for name in table.merge.sequence_by]), NO_SEQUENCE
        yield _any_null([columns[name] for name in table.merge.keys]), NO_KEY
        for name in (one for one in table.merge.partitions if kinds[one] == "string"):
            yield _not_like(columns[name], FOLDER_TEXTS), BAD_PARTITION_VALUE
            yield np.asarray(pc.fill_null(pc.equal(columns[name], ""), False)), NO_KEY


def _not_like(values: pa.Array, pattern: str) -> Bits:
    return _not_so(values, lambda text: re.fullmatch(pattern, text, re.ASCII) is not None)


def _not_so(values: pa.Array, holds: Callable[[str], bool]) -> Bits:
    """The values for which it does not hold; null is none."""
    encoded = values.dictionary_encode()
    texts = encoded.dictionary.cast(pa.string()).to_pylist()
    odd = pa.array([not holds(text) for text in texts], pa.bool_())
    return np.asarray(pc.fill_null(odd.take(encoded.indices), False))


def _any_null(arrays: list[pa.Array]) -> Bits:
    nulls = np.zeros(len(arrays[0]), bool)
    for array in arrays:
        nulls |= np.asarray(pc.is_null(array))
    return nulls
