"""Records that came before, in another file or in the same batch, are left out and counted.

In: the rows of a batch (or of a retry) with fates, and which tables declare what makes a record the same. Out: the same rows,
in which all but the first of equal records are to be dropped; and the ids of the written ones, for later batches.

The cost does not grow with the tables. Ids are 16 bytes in a table of their own (`_forebay/ids`), partitioned by day. The
driver keeps half of each id of the longest window (`recent_ids`). So a batch reads only the days of likely duplicates. A
replayed batch does not find its own ids, nor those of retries since its first attempt: it must reach the same fates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from forebay.batch.columns import with_declared_columns
from forebay.batch.reading import until
from forebay.batch.recent_ids import RecentIds
from forebay.content.end import FileEnd
from forebay.declaration.service import Service
from forebay.ledger.ledger import rows_with
from forebay.table.conflict import is_conflict
from forebay.table.kernel import NO_VERSION, TableLogs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DUPLICATE", "RETRY", "Dedupe", "landing"]

RETRY = "retry"
"""What stands for a generation where records that were kept beside the tables are written."""

DUPLICATE = "_duplicate"
"""Stands among the names of what a dropped row violates."""

ID = "_id"

RECORD = ("_file_id", "byte_offset")
"""What a record is known by. Never its line: many records may stand on one."""


def landing(ends: Sequence[FileEnd]) -> list[int]:
    """The pieces of the files that land."""
    return [piece for end in ends if end.lands for piece in end.lines_before]


@dataclass(frozen=True, kw_only=True)
class Dedupe:
    """Of one batch. `leaving` are the files whose rows make room for those of this batch: theirs are no duplicates. Known are
    the ids as of a version of their table, if `as_of` says so, and of tries those up to the number `tries_until`."""

    spark: SparkSession
    service: Service
    path: str
    logs: TableLogs
    shared: Mapping[str, Any]
    day: date
    recent: RecentIds | None = None
    leaving: Sequence[str] = ()
    as_of: int | None = None
    tries_until: int | None = None

    @property
    def wanted(self) -> bool:
        return any(table.dedupe for table in self.service.tables)

    def without_duplicates(self, rows: DataFrame, pieces: Sequence[int], cached: ExitStack) -> DataFrame:
        """Only among the rows of these pieces, which land: a record whose first copy does not land must not be dropped for
        it. The rows are asked for twice here, so they had better be cached."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        rows = self._with_ids(rows)
        mine = rows.where(F.col(ID).isNotNull() & F.col("piece").isin(list(pieces)))
        mine = mine.select(*RECORD, ID, "_declared")
        order = Window.partitionBy(ID).orderBy(*RECORD)
        mine = mine.withColumn("_nth", F.row_number().over(order))
        again = F.col("_nth") > 1
        if (known := self._known(mine.select(F.col(ID).alias("id")).distinct())) is not None:
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
        """Of the rows that were written."""
        from pyspark.sql import functions as F

        written = rows.where((F.col("_fate") == "write") & F.col(ID).isNotNull())
        if unwritten:
            written = written.where(~F.col("_table").isin(sorted(unwritten)))
        same = {name: F.lit(value) for name, value in self.shared.items()}
        same["batch"] = same["batch"].cast("long")
        day = F.lit(self.day).alias("day")
        return written.select(
            day, *(v.alias(n) for n, v in same.items()), F.col(ID).alias("id"), F.col("_file_id").alias("file_id")
        )

    def forget(self) -> None:
        """Days that no window reaches are removed, whole partitions of them; again is harmless, and so is another time, where
        they are being compacted."""
        from delta.tables import DeltaTable
        from pyspark.sql import functions as F

        if self.logs.look(self.path) is not None:
            oldest = self.day - timedelta(days=self._longest() + 1)
            try:
                DeltaTable.forPath(self.spark, self.path).delete(F.col("day") < F.lit(oldest))
            except Exception as refused:
                if not is_conflict(refused):
                    raise

    def _with_ids(self, rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        rows = rows.withColumn(ID, F.lit(None).cast("binary"))
        for number, table in enumerate(self.service.tables):
            if table.dedupe is None:
                continue
            parts = [F.col(name).cast("string") for name in table.dedupe.by]
            same = F.unhex(F.md5(F.to_json(F.array(F.col("_row._table"), *parts))))
            meant = F.col("_row._declared") == number
            mine = meant & (F.col("_row._fate") == "write") & F.coalesce(*parts).isNotNull()
            kept = [F.col(f"_row.{name}") for name in rows.columns if name != ID]
            asked = with_declared_columns(rows, self.service, table, meant)
            rows = asked.select(*kept, F.when(mine, same).otherwise(F.col(f"_row.{ID}")).alias(ID))
        return rows

    def _known(self, asked: DataFrame) -> DataFrame | None:
        """Of these ids, those that other batches wrote, with the last day on which each was written."""
        from pyspark.sql import functions as F

        if self.as_of == NO_VERSION or self.logs.look(self.path) is None:
            return None
        since = self.day - timedelta(days=self._longest())
        hints = None if self.recent is None else self.recent.days_of(asked.toArrow()["id"], since)
        if hints == {}:
            return None
        reader = self.spark.read.format("delta")
        ids = (reader if self.as_of is None else reader.option("versionAsOf", self.as_of)).load(self.path)
        if hints is None:
            ids = ids.where(F.col("day") >= F.lit(since)).join(asked, "id", "left_semi")
        else:
            ids = rows_with(ids.where(F.col("day").isin(sorted(set().union(*hints.values())))), "id", "binary", hints)
        own = (F.col("generation") == self.shared["generation"]) & (F.col("batch") == self.shared["batch"])
        ids = ids.where(~own)
        if self.tries_until is not None:
            ids = ids.where((F.col("generation") != RETRY) | (F.col("batch") <= self.tries_until))
        if self.leaving:
            ids = ids.where(~F.col("file_id").isin(list(self.leaving)))
        return ids.groupBy("id").agg(F.max("day").alias("day"))

    def _since(self) -> Any:
        """From which day on an id of this row's declaration counts."""
        from pyspark.sql import functions as F

        since = F.lit(None).cast("date")
        for number, table in enumerate(self.service.tables):
            if table.dedupe is not None:
                first = F.lit(self.day - timedelta(days=table.dedupe.days))
                since = F.when(F.col("_declared") == number, first).otherwise(since)
        return since

    def _longest(self) -> int:
        return max(table.dedupe.days for table in self.service.tables if table.dedupe is not None)
