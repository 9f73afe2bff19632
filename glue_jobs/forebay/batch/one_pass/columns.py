"""The columns of a table's rows that do not come from undeclared fields, and why a row may not be in its table.

In: records of one table, with the pieces they are of. Out: `Filled`: an array for each declared column, what did not fit, and a
reason for each row that is refused. It does for plain tables what `batch.declared_columns` and `batch.expectations` have Spark
do; a test compares the two.
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
from forebay.batch.reasons import BAD_PARTITION_VALUE, EVENT_IN_THE_FUTURE, EVENT_TOO_OLD, NO_KEY, NO_SEQUENCE
from forebay.declaration.column import Column
from forebay.declaration.merge import FOLDER_TEXTS
from forebay.declaration.path import parse_path
from forebay.declaration.table import Table
from forebay.record.conform import Records
from forebay.record.moment import MICROS_OF_A_DAY
from forebay.record.typed import arrow_type_of, converted, typed

__all__ = ["Filled", "filled"]

MICROS_OF_AN_HOUR = 3_600_000_000

Bits = Any


@dataclass(frozen=True)
class Filled:
    """`refused` has null for each row that may be in its table."""

    columns: dict[str, pa.Array]
    misfits: pa.StringArray
    refused: pa.StringArray


def filled(records: Records, pieces: pa.Array, table: Table, landed: Landed) -> Filled:
    of_record = [column for column in table.columns if column.of_record]
    made = typed(records, of_record)
    columns = dict(zip([column.name for column in of_record], made.columns, strict=True))
    columns |= {
        column.name: _of_object(column, landed, pieces)
        for column in table.columns
        if not column.of_record and column.expression is None
    }
    times = _Times(table, columns, landed.landed_at(pieces))
    columns |= {c.name: times.day_of(source) for c in table.columns if (source := day_source(c, table)) is not None}
    columns = {column.name: columns[column.name] for column in table.columns}
    return Filled(columns, made.misfits, _refused(table, columns, times, len(pieces)))


def _of_object(column: Column, landed: Landed, pieces: pa.Array) -> pa.Array:
    """A value that does not fit is null: the record does not hold it."""
    texts = landed.of_object(parse_path(column.source), pieces).dictionary_encode()
    values = [converted(text, column) for text in texts.dictionary.to_pylist()]
    return pa.array(values, arrow_type_of(column)).take(texts.indices)


class _Times:
    """The event time of rows, within its bounds; where there is none, or none is declared, nothing is outside."""

    def __init__(self, table: Table, columns: dict[str, pa.Array], landed: pa.TimestampArray) -> None:
        self.when, self.columns = table.event_time, columns
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

    def day_of(self, source: Column) -> pa.Date32Array:
        values = self.columns[source.name]
        if pa.types.is_date(values.type):
            return values
        micros = _micros(values)
        if self.when is not None and self.when.outside == "bucket" and source.name == self.when.column:
            bucket = self.when.bucket.replace(tzinfo=self.when.bucket.tzinfo or UTC)
            bucket_micros = pa.scalar(bucket, pa.timestamp("us", tz="UTC")).value
            micros = np.where(self.too_old | self.too_new, bucket_micros, micros)
        days = pa.array((micros // MICROS_OF_A_DAY).astype(np.int32), pa.int32(), mask=np.asarray(pc.is_null(values)))
        return days.cast(pa.date32())


def _micros(moments: pa.TimestampArray) -> Any:
    return np.asarray(pc.fill_null(moments.cast(pa.int64()), 0))


def _refused(table: Table, columns: dict[str, pa.Array], times: _Times, rows: int) -> pa.StringArray:
    """The last reason that holds."""
    why = pa.nulls(rows, pa.string())
    for which, reason in _reasons(table, columns, times):
        if which.any():
            why = pc.if_else(pa.array(which), reason, why)
    return why


def _reasons(table: Table, columns: dict[str, pa.Array], times: _Times) -> Iterator[tuple[Bits, str]]:
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
