"""Leaves out and counts records that were loaded before, in another file or in the same batch.

In: the tables that declare `dedupe`, and the ids of the rows of a batch or a retry (`record.ids`). Out: the ids that are
duplicates (`one_pass.duplicates` leaves out their rows).

Ids are 16 bytes in their own table (`_forebay/ids`), partitioned by day. The driver keeps half of each id of the longest
window (`recent_ids`), so a batch reads only the days of likely duplicates. A batch that begins again must reach the same fates:
it finds neither its own ids nor those of retries since its first attempt. Once it has a plan, the ids that the plan is to write
decide alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from forebay.batch.commits import Commits
from forebay.batch.recent_ids import RecentIds
from forebay.lake.layout import IDS
from forebay.ledger.ledger import rows_with
from forebay.table.commit import is_conflict
from forebay.table.kernel import NO_VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RETRY = "retry"
"""The generation of records that were kept beside the tables and are written later."""

DUPLICATE = "_duplicate"
"""Stands among the names of what a dropped row violates."""


@dataclass(frozen=True, kw_only=True)
class Dedupe:
    """The duplicates of one batch. `leaving` are the files whose rows are replaced, each with a file that replaces it, perhaps
    several times: if one of those lands, its records are not duplicates. Known are the ids as of a version of their table, if
    `as_of` says so, and of retries those up to the number `tries_until`. If the batch has a plan, all ids are known but
    the `planned` ones."""

    writing: Commits
    day: date
    recent: RecentIds | None = None
    leaving: Collection[tuple[str, str]] = ()
    as_of: int | None = None
    tries_until: int | None = None
    planned: Callable[[], DataFrame | None] | None = None

    @property
    def wanted(self) -> bool:
        return self.writing.service.drops_duplicates

    @property
    def path(self) -> str:
        return self.writing.place_of(IDS)

    @property
    def of_all_ids(self) -> dict[str, Any]:
        """The values that all rows of the batch share in the table of ids."""
        return {"day": self.day, **self.writing.shared}

    def forget(self, today: date) -> None:
        """Days that no window of this service reaches are removed; again is harmless, and so is another time, where they are
        being compacted. A batch whose newest file claims to be of the future goes by `today`. Another service in this lake may
        have longer windows."""
        from delta.tables import DeltaTable
        from pyspark.sql import functions as F

        if self.writing.logs.look(self.path) is not None:
            oldest = min(self.day, today) - timedelta(days=self._longest() + 1)
            past = (F.col("day") < F.lit(oldest)) & (F.col("service") == self.writing.service.name)
            try:
                DeltaTable.forPath(self.writing.spark, self.path).delete(past)
            except Exception as refused:
                if not is_conflict(refused):
                    raise

    def days_of(self, ids: pa.FixedSizeBinaryArray, landed: Collection[str]) -> dict[bytes, date]:
        """The ids, among these, that other batches wrote, with the last day on which each was written."""
        if self.planned is not None:
            return self._not_planned(ids, self.planned())
        known = self._known(ids, landed)
        return {} if known is None else {bytes(row["id"]): row["day"] for row in known.toArrow().to_pylist()}

    def _not_planned(self, ids: pa.FixedSizeBinaryArray, planned: DataFrame | None) -> dict[bytes, date]:
        mine: set[bytes] = set()
        if planned is not None:
            asked = self.writing.spark.createDataFrame(pa.table({"id": ids.cast(pa.binary())}))
            mine = {
                bytes(row["id"]) for row in planned.join(asked, "id", "left_semi").select("id").toArrow().to_pylist()
            }
        return dict.fromkeys(set(ids.to_pylist()) - mine, self.day)

    def _known(self, ids: pa.FixedSizeBinaryArray, landed: Collection[str]) -> DataFrame | None:
        """The same, as Spark has it. Where the driver remembers recent ids, only days of likely duplicates are read."""
        from pyspark.sql import functions as F

        if self.as_of == NO_VERSION or self.writing.logs.look(self.path) is None:
            return None
        since = self.day - timedelta(days=self._longest())
        hints = None if self.recent is None else self.recent.days_of(pa.chunked_array([ids]), since)
        if hints == {}:
            return None
        reader = self.writing.spark.read.format("delta")
        rows = (reader if self.as_of is None else reader.option("versionAsOf", self.as_of)).load(self.path)
        if hints is None:
            asked = self.writing.spark.createDataFrame(pa.table({"id": ids.cast(pa.binary())}))
            rows = rows.where(F.col("day") >= F.lit(since)).join(asked, "id", "left_semi")
        else:
            rows = rows_with(rows.where(F.col("day").isin(sorted(set().union(*hints.values())))), "id", "binary", hints)
        own = (F.col("generation") == self.writing.generation) & (F.col("batch") == self.writing.txn.version)
        rows = rows.where(~own)
        if self.tries_until is not None:
            rows = rows.where((F.col("generation") != RETRY) | (F.col("batch") <= self.tries_until))
        if leaving := self.leaving_for(landed):
            rows = rows.where(~F.col("file_id").isin(leaving))
        return rows.groupBy("id").agg(F.max("day").alias("day"))

    def leaving_for(self, landed: Collection[str]) -> list[str]:
        return [file_id for file_id, by in self.leaving if by in landed]

    @property
    def since(self) -> dict[int, date]:
        """From which day on an id counts, by the number of its declaration."""
        tables = enumerate(self.writing.service.tables)
        return {n: self.day - timedelta(days=table.dedupe.days) for n, table in tables if table.dedupe is not None}

    def _longest(self) -> int:
        return max(table.dedupe.days for table in self.writing.service.tables if table.dedupe is not None)
