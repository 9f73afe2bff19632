"""Records that came before are left out, among the rows of a batch with their fates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from forebay.batch.dedupe import DUPLICATE, Dedupe
from forebay.declaration.column import Column
from forebay.declaration.service import Service
from forebay.record.ids import ID_BYTES
from tests.batch.by_spark.declared_columns import of, with_declared_columns
from tests.batch.by_spark.records import declared_column

ID = "_id"

RECORD = ("_file_id", "byte_offset")
"""The identity of a record. Never its line: many records may be on one."""


def without_duplicates(
    dedupe: Dedupe, rows: DataFrame, pieces: Sequence[int], cached: ExitStack, landed: Collection[str]
) -> DataFrame:
    """Only among the rows of these pieces, which land: a record whose first copy does not land must not be dropped for it.
    `landed` are their files. The rows are asked for twice here, so they had better be cached."""
    rows = _with_ids(rows, dedupe.writing.service)
    mine = rows.where(F.col(ID).isNotNull() & F.col("piece").isin(list(pieces)))
    mine = mine.select(*RECORD, ID, "_declared")
    order = Window.partitionBy(ID).orderBy(*RECORD)
    mine = mine.withColumn("_nth", F.row_number().over(order))
    again = F.col("_nth") > 1
    asked = mine.select(ID).distinct().toArrow()[ID].combine_chunks().cast(pa.binary(ID_BYTES))
    known = dedupe.days_of(asked, landed)
    if known:
        days = dedupe.writing.spark.createDataFrame(
            [(bytearray(id_), day) for id_, day in known.items()], "id binary, day date"
        )
        mine = mine.join(days, F.col(ID) == F.col("id"), "left")
        again = again | (F.col("day") >= _since(dedupe))
    doubles = until(cached, mine.where(again).select(*RECORD, F.lit(True).alias("_again")))
    rows = rows.join(doubles, [*RECORD], "left")
    rows = rows.withColumn("_fate", F.when(F.col("_again"), "drop").otherwise(F.col("_fate")))
    names = F.when(F.col("_again"), F.array(F.lit(DUPLICATE))).otherwise(F.col("_violated"))
    return rows.withColumn("_violated", names).drop("_again")


def ids_of_rows(dedupe: Dedupe, rows: DataFrame, unwritten: Mapping[str, str]) -> DataFrame:
    """Of the rows that are written."""
    written = rows.where((F.col("_fate") == "write") & F.col(ID).isNotNull())
    if unwritten:
        written = written.where(~F.col("_table").isin(sorted(unwritten)))
    same = {name: F.lit(value) for name, value in dedupe.of_all_ids.items()}
    same["batch"] = same["batch"].cast("long")
    told = {ID: "id", "_file_id": "file_id", "_table": "table"}
    return written.select(
        *(v.alias(n) for n, v in same.items()), *(F.col(name).alias(as_) for name, as_ in told.items())
    )


def _with_ids(rows: DataFrame, service: Service) -> DataFrame:
    """Each row with its id, in one step for all tables."""
    read, computed = _ways(service)
    tables = {number: service.tables[number] for number in computed}
    made = with_declared_columns(rows, service, tables, lambda number: F.col("_declared") == number)
    ids = [_id_in(numbers, [declared_column(service, c) for c in by]) for by, numbers in read.items()]
    ids += [_id_in([number], [of(number, name) for name in by]) for number, by in computed.items()]
    return made.select(*rows.columns, F.coalesce(F.lit(None).cast("binary"), *ids).alias(ID))


def _ways(service: Service) -> tuple[dict[tuple[Column, ...], list[int]], dict[int, tuple[str, ...]]]:
    """The declarations by the columns that they read their ids from, and those whose ids are computed."""
    read: dict[tuple[Column, ...], list[int]] = {}
    computed: dict[int, tuple[str, ...]] = {}
    for number, table in enumerate(service.tables):
        if table.dedupe is None:
            continue
        columns = {column.name: column for column in table.columns}
        by = tuple(columns[name] for name in table.dedupe.by)
        if any(table.computes(column) for column in by):
            computed[number] = table.dedupe.by
        else:
            read.setdefault(by, []).append(number)
    return read, computed


def _since(dedupe: Dedupe) -> Any:
    """From which day on an id of this row's declaration counts."""
    since = F.lit(None).cast("date")
    for number, first in dedupe.since.items():
        since = F.when(F.col("_declared") == number, F.lit(first)).otherwise(since)
    return since


def _id_in(numbers: Sequence[int], values: Iterable[Expression]) -> Expression:
    """The id of a row that one of these declarations writes, of these values; null where none of them has a value."""
    parts = texts_of(values)
    mine = F.col("_declared").isin(list(numbers)) & (F.col("_fate") == "write")
    return F.when(mine & F.coalesce(*parts).isNotNull(), id_of(F.col("_table"), parts))


def texts_of(values: Iterable[Expression]) -> list[Expression]:
    return [value.cast("string") for value in values]


def id_of(table: Expression, parts: Sequence[Expression]) -> Expression:
    return F.unhex(F.md5(F.to_json(F.array(table, *parts))))


def until(cached: ExitStack, rows: DataFrame) -> DataFrame:
    """The same rows, in Spark's cache until that is closed."""
    cached.callback(rows.unpersist)
    return rows.persist(StorageLevel.MEMORY_AND_DISK)
