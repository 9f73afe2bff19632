"""The columns of a table's rows that do not come from undeclared fields, and why a row may not be in its table.

In: records of one table, with their pieces and Spark's answers. Out: `Filled`: an array for each declared column, what did not
fit, a reason for each row that is refused, and the expectations that rows violate. It does what
`batch.declared_columns` and `batch.expectations` have Spark do; a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.expectations import USUAL_VALUES
from forebay.batch.one_pass.landed import Landed
from forebay.batch.one_pass.plain import day_source
from forebay.batch.one_pass.questions import Question
from forebay.batch.reasons import BAD_PARTITION_VALUE, EVENT_IN_THE_FUTURE, EVENT_TOO_OLD, NO_KEY, NO_SEQUENCE
from forebay.declaration.column import Column
from forebay.declaration.merge import FOLDER_TEXTS
from forebay.declaration.path import parse_path
from forebay.declaration.table import Table
from forebay.record.conform import Records
from forebay.record.moment import MICROS_OF_A_DAY
from forebay.record.number import write_json
from forebay.record.typed import arrow_type_of, converted, typed

__all__ = ["Bits", "Filled", "ReadColumns", "filled", "read_columns"]

MICROS_OF_AN_HOUR = 3_600_000_000

Bits = Any


@dataclass(frozen=True)
class ReadColumns:
    """The declared columns that Spark need not compute, and the `misfits`: values that did not fit them."""

    columns: dict[str, pa.Array]
    misfits: pa.StringArray
    times: Times

    def bucketed(self, name: str) -> pa.Array:
        """The event time for the columns that are computed from it."""
        return self.times.bucketed(self.columns[name])


@dataclass(frozen=True)
class Filled:
    """`refused` has null for each row that may be in its table. `violated` are the expectations of the table that a row does
    not meet, by name."""

    columns: dict[str, pa.Array]
    misfits: pa.StringArray
    refused: pa.StringArray
    violated: dict[str, Bits]


def read_columns(records: Records, rows: pa.Table, table: Table, landed: Landed) -> ReadColumns:
    of_record = [column for column in table.columns if column.of_record]
    made = typed(records, of_record)
    columns = dict(zip([column.name for column in of_record], made.columns, strict=True))
    columns |= {
        column.name: _of_object(column, landed, rows)
        for column in table.columns
        if not column.of_record and column.expression is None
    }
    times = Times(table, columns, landed.landed_at(rows["piece"].combine_chunks()))
    columns |= {
        c.name: times.day_of(source, columns) for c in table.columns if (source := day_source(c, table)) is not None
    }
    return ReadColumns(columns, made.misfits, times)


def filled(records: Records, rows: pa.Table, table: Table, landed: Landed, question: Question | None) -> Filled:
    """`rows` are those of the records, with Spark's answers where there is a `question`."""
    read = read_columns(records, rows, table, landed)
    columns, misfits, violated = read.columns, read.misfits, dict[str, Bits]()
    if question is not None:
        answers = {name: Answered.of(rows[slot]) for name, slot in question.derived.items()}
        columns |= {name: one.values for name, one in answers.items()}
        misfits = _with_failed(misfits, {name: one.failed for name, one in answers.items()})
        violated = {name: Answered.of(rows[slot]).is_false for name, slot in question.checks.items()}
    columns = {column.name: columns[column.name] for column in table.columns}
    return Filled(columns, misfits, _refused(table, columns, read.times, rows.num_rows), violated)


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
    names = [name for name, which in failed.items() if which.any()]
    if not names:
        return misfits
    before = {name: write_json({name: None}) for name in names}
    made = misfits.to_pylist()
    for row in np.flatnonzero(np.logical_or.reduce([failed[name] for name in names])).tolist():
        some = [before[name] for name in names if failed[name][row]]
        rest = "," + made[row][1:] if made[row] is not None else "]"
        made[row] = "[" + ",".join(some) + rest
    return pa.array(made, pa.string())


def _of_object(column: Column, landed: Landed, rows: pa.Table) -> pa.Array:
    """A value that does not fit is null: the record does not hold it."""
    texts = landed.of_object(parse_path(column.source), rows).dictionary_encode()
    values = [converted(text, column) for text in texts.dictionary.to_pylist()]
    return pa.array(values, arrow_type_of(column)).take(texts.indices)


class Times:
    """The event time of rows, within its bounds; where there is none, or none is declared, nothing is outside."""

    def __init__(self, table: Table, columns: dict[str, pa.Array], landed: pa.TimestampArray) -> None:
        self.when = table.event_time
        self.too_old = self.too_new = np.zeros(len(landed), bool)
        if self.when is None:
            return
        name = self.when.column
        if self.when.otherwise == "landed":
            columns[name] = pc.coalesce(columns[name], landed)
        known = np.asarray(pc.and_(pc.is_valid(columns[name]), pc.is_valid(landed)))
        moment, arrived = _micros(columns[name]), _micros(landed)
        if self.when.oldest_days is not None:
            self.too_old = known & (moment < arrived - round(self.when.oldest_days * MICROS_OF_A_DAY))
        if self.when.ahead_hours is not None:
            self.too_new = known & (moment > arrived + round(self.when.ahead_hours * MICROS_OF_AN_HOUR))

    def bucketed(self, values: pa.TimestampArray) -> pa.TimestampArray:
        """The event time, with that of the bucket where it is outside."""
        assert self.when is not None
        bucket = pa.scalar(self.when.bucket.replace(tzinfo=self.when.bucket.tzinfo or UTC), values.type)
        return pc.if_else(pa.array(self.too_old | self.too_new), bucket, values)

    def day_of(self, source: Column, columns: dict[str, pa.Array]) -> pa.Date32Array:
        values = columns[source.name]
        if pa.types.is_date(values.type):
            return values
        if self.when is not None and self.when.outside == "bucket" and source.name == self.when.column:
            values = self.bucketed(values)
        micros = _micros(values)
        days = pa.array((micros // MICROS_OF_A_DAY).astype(np.int32), pa.int32(), mask=np.asarray(pc.is_null(values)))
        return days.cast(pa.date32())


def _micros(moments: pa.TimestampArray) -> Any:
    return np.asarray(pc.fill_null(moments.cast(pa.int64()), 0))


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
    """Which values do not match; null is none."""
    encoded = values.dictionary_encode()
    texts = encoded.dictionary.cast(pa.string()).to_pylist()
    odd = pa.array([re.fullmatch(pattern, text, re.ASCII) is None for text in texts], pa.bool_())
    return np.asarray(pc.fill_null(odd.take(encoded.indices), False))


def _any_null(arrays: list[pa.Array]) -> Bits:
    nulls = np.zeros(len(arrays[0]), bool)
    for array in arrays:
        nulls |= np.asarray(pc.is_null(array))
    return nulls
