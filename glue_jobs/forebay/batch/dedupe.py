"""Records that came before, in another file or in the same batch, are left out and counted.

In: the rows of a batch (or of a retry) with fates, and which tables declare what makes a record the same. Out: the same rows,
marked to drop all but the first of equal records; and the ids of the written ones, for later batches.

The cost does not grow with the tables. Ids are 16 bytes in a table of their own (`_forebay/ids`), partitioned by day. The
driver keeps half of each id of the longest window (`recent_ids`). So a batch reads only the days of likely duplicates. The ids
of a file leave with its rows when another version replaces it. A replayed batch does not find its own ids, nor those of
retries since its first attempt: it must reach the same fates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from forebay.batch.columns import declared_column
from forebay.batch.declared_columns import of, with_declared_columns
from forebay.batch.recent_ids import RecentIds
from forebay.declaration.column import Column
from forebay.declaration.service import Service
from forebay.ledger.ledger import rows_with
from forebay.table.commit import is_conflict
from forebay.table.kernel import NO_VERSION, TableLogs

if TYPE_CHECKING:
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DUPLICATE", "RETRY", "Dedupe", "until"]

RETRY = "retry"
"""The generation of records that were kept beside the tables and are written later."""

DUPLICATE = "_duplicate"
"""Stands among the names of what a dropped row violates."""

ID = "_id"

RECORD = ("_file_id", "byte_offset")
"""The identity of a record. Never its line: many records may be on one."""


@dataclass(frozen=True, kw_only=True)
class Dedupe:
    """Of one batch. `leaving` are the files whose rows are replaced, each with a file that replaces it, perhaps several
    times: if one of those lands, its records are not duplicates. Known are the ids as of a version of their table, if
    `as_of` says so, and of retries those up to the number `tries_until`."""

    spark: SparkSession
    service: Service
    path: str
    logs: TableLogs
    shared: Mapping[str, Any]
    day: date
    recent: RecentIds | None = None
    leaving: Collection[tuple[str, str]] = ()
    as_of: int | None = None
    tries_until: int | None = None

    @property
    def wanted(self) -> bool:
        return any(table.dedupe for table in self.service.tables)

    def without_duplicates(
        self, rows: DataFrame, pieces: Sequence[int], cached: ExitStack, landed: Collection[str] = ()
    ) -> DataFrame:
        """Only among the rows of these pieces, which land: a record whose first copy does not land must not be dropped for
        it. `landed` are their files. The rows are asked for twice here, so they had better be cached."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        rows = self._with_ids(rows)
        mine = rows.where(F.col(ID).isNotNull() & F.col("piece").isin(list(pieces)))
        mine = mine.select(*RECORD, ID, "_declared")
        order = Window.partitionBy(ID).orderBy(*RECORD)
        mine = mine.withColumn("_nth", F.row_number().over(order))
        again = F.col("_nth") > 1
        asked = mine.select(F.col(ID).alias("id")).distinct()
        if (known := self._known(lambda: asked.toArrow()["id"], lambda: asked, landed)) is not None:
            mine = mine.join(known, F.col(ID) == F.col("id"), "left")
            again = again | (F.col("day") >= self._since())
        doubles = until(cached, mine.where(again).select(*RECORD, F.lit(True).alias("_again")))
        rows = rows.join(doubles, [*RECORD], "left")
        rows = rows.withColumn("_fate", F.when(F.col("_again"), "drop").otherwise(F.col("_fate")))
        rows = rows.withColumn(
            "_violated", F.when(F.col("_again"), F.array(F.lit(DUPLICATE))).otherwise(F.col("_violated"))
        )
        return rows.drop("_again")

    def ids(self, rows: DataFrame, unwritten: Mapping[str, str]) -> DataFrame:
        """Of the rows that are written."""
        from pyspark.sql import functions as F

        written = rows.where((F.col("_fate") == "write") & F.col(ID).isNotNull())
        if unwritten:
            written = written.where(~F.col("_table").isin(sorted(unwritten)))
        same = {name: F.lit(value) for name, value in self.of_all_ids.items()}
        same["batch"] = same["batch"].cast("long")
        told = {ID: "id", "_file_id": "file_id", "_table": "table"}
        return written.select(
            *(v.alias(n) for n, v in same.items()), *(F.col(name).alias(as_) for name, as_ in told.items())
        )

    @property
    def of_all_ids(self) -> dict[str, Any]:
        """The values that all rows of the batch share in the table of ids."""
        return {"day": self.day, **self.shared}

    def forget(self, today: date) -> None:
        """Days that no window of this service reaches are removed; again is harmless, and so is another time, where they are
        being compacted. A batch whose newest file claims to be of the future goes by `today`. Another service in this lake may
        have longer windows."""
        from delta.tables import DeltaTable
        from pyspark.sql import functions as F

        if self.logs.look(self.path) is not None:
            oldest = min(self.day, today) - timedelta(days=self._longest() + 1)
            past = (F.col("day") < F.lit(oldest)) & (F.col("service") == self.service.name)
            try:
                DeltaTable.forPath(self.spark, self.path).delete(past)
            except Exception as refused:
                if not is_conflict(refused):
                    raise

    def _with_ids(self, rows: DataFrame) -> DataFrame:
        """Each row with its id, in one step for all tables."""
        from pyspark.sql import functions as F

        read, computed = self._ways()
        tables = {number: self.service.tables[number] for number in computed}
        made = with_declared_columns(rows, self.service, tables, lambda number: F.col("_declared") == number)
        ids = [_id_in(numbers, [declared_column(self.service, c) for c in by]) for by, numbers in read.items()]
        ids += [_id_in([number], [of(number, name) for name in by]) for number, by in computed.items()]
        return made.select(*rows.columns, F.coalesce(F.lit(None).cast("binary"), *ids).alias(ID))

    def _ways(self) -> tuple[dict[tuple[Column, ...], list[int]], dict[int, tuple[str, ...]]]:
        """The declarations by the columns that they read their ids from, and those whose ids are computed."""
        read: dict[tuple[Column, ...], list[int]] = {}
        computed: dict[int, tuple[str, ...]] = {}
        for number, table in enumerate(self.service.tables):
            if table.dedupe is None:
                continue
            columns = {column.name: column for column in table.columns}
            by = tuple(columns[name] for name in table.dedupe.by)
            if any(table.computes(column) for column in by):
                computed[number] = table.dedupe.by
            else:
                read.setdefault(by, []).append(number)
        return read, computed

    def days_of(self, ids: pa.FixedSizeBinaryArray, landed: Collection[str]) -> dict[bytes, date]:
        """Of these ids, those that other batches wrote, with the last day on which each was written."""
        rows = pa.table({"id": ids.cast(pa.binary())})
        known = self._known(lambda: pa.chunked_array([ids]), lambda: self.spark.createDataFrame(rows), landed)
        return {} if known is None else {bytes(row["id"]): row["day"] for row in known.toArrow().to_pylist()}

    def _known(
        self, ids: Callable[[], pa.ChunkedArray], asked: Callable[[], DataFrame], landed: Collection[str]
    ) -> DataFrame | None:
        """The same, as Spark has it. The driver gets the `ids` only where it remembers recent ones, and Spark is `asked` only
        where it does not."""
        from pyspark.sql import functions as F

        if self.as_of == NO_VERSION or self.logs.look(self.path) is None:
            return None
        since = self.day - timedelta(days=self._longest())
        hints = None if self.recent is None else self.recent.days_of(ids(), since)
        if hints == {}:
            return None
        reader = self.spark.read.format("delta")
        rows = (reader if self.as_of is None else reader.option("versionAsOf", self.as_of)).load(self.path)
        if hints is None:
            rows = rows.where(F.col("day") >= F.lit(since)).join(asked(), "id", "left_semi")
        else:
            rows = rows_with(rows.where(F.col("day").isin(sorted(set().union(*hints.values())))), "id", "binary", hints)
        own = (F.col("generation") == self.shared["generation"]) & (F.col("batch") == self.shared["batch"])
        rows = rows.where(~own)
        if self.tries_until is not None:
            rows = rows.where((F.col("generation") != RETRY) | (F.col("batch") <= self.tries_until))
        if leaving := self.leaving_for(landed):
            rows = rows.where(~F.col("file_id").isin(leaving))
        return rows.groupBy("id").agg(F.max("day").alias("day"))

    def leaving_for(self, landed: Collection[str]) -> list[str]:
        return [file_id for file_id, by in self.leaving if by in landed]

    def _since(self) -> Any:
        """From which day on an id of this row's declaration counts."""
        from pyspark.sql import functions as F

        since = F.lit(None).cast("date")
        for number, first in self.since.items():
            since = F.when(F.col("_declared") == number, F.lit(first)).otherwise(since)
        return since

    @property
    def since(self) -> dict[int, date]:
        """From which day on an id counts, by the number of its declaration."""
        tables = enumerate(self.service.tables)
        return {n: self.day - timedelta(days=table.dedupe.days) for n, table in tables if table.dedupe is not None}

    def _longest(self) -> int:
        return max(table.dedupe.days for table in self.service.tables if table.dedupe is not None)


def _id_in(numbers: Sequence[int], values: Iterable[Expression]) -> Expression:
    """The id of a row that one of these declarations writes, of these values; null where none of them has a value."""
    from pyspark.sql import functions as F

    parts = _texts(values)
    mine = F.col("_declared").isin(list(numbers)) & (F.col("_fate") == "write")
    return F.when(mine & F.coalesce(*parts).isNotNull(), _id_of(F.col("_table"), parts))


def _texts(values: Iterable[Expression]) -> list[Expression]:
    return [value.cast("string") for value in values]


def _id_of(table: Expression, parts: Sequence[Expression]) -> Expression:
    from pyspark.sql import functions as F

    return F.unhex(F.md5(F.to_json(F.array(table, *parts))))


def until(cached: ExitStack, rows: DataFrame) -> DataFrame:
    """The same rows, in Spark's cache until that is closed. A row that stays in the cache stays as long as the job runs."""
    from pyspark import StorageLevel

    cached.callback(rows.unpersist)
    return rows.persist(StorageLevel.MEMORY_AND_DISK)
