"""The quarantine and the parked records, beside the tables. Both have the same columns.

In: a batch's rows with their fates, the tables that are not written and why, and what all rows of the batch say alike.
Out: the rows that belong in `<lake>/_forebay/quarantine` and `<lake>/_forebay/parked`. A quarantine row without a line
is a whole file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from forebay.batch.accounting import Standing
from forebay.content.end import FileEnd
from forebay.table.in_arrow import arrow_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["COLUMNS", "MOST_DETAIL", "Held"]

COLUMNS = (
    "day date, at timestamp, service string, generation string, batch long, file_id string, bucket string, key string, "
    "version_id string, line long, byte_offset long, table string, reason string, detail string, record string, "
    "metadata string"
)

MOST_DETAIL = 1_000
"""Characters of why a table could not be written: each of its rows has it."""

_FROM_ROWS = {"file_id": "_file_id", "line": "_line", "table": "_table", "reason": "_reason", "record": "value"}


class Held:
    """The rows of one batch that go beside the tables."""

    def __init__(
        self,
        rows: DataFrame | None,
        spark: SparkSession,
        unwritten: Mapping[str, str],
        shared: Mapping[str, Any],
        standing: Standing | None = None,
        causes: Mapping[str, str] | None = None,
    ) -> None:
        self._rows, self._spark, self._unwritten, self._causes = rows, spark, unwritten, causes or {}
        self._standing = standing or {}
        self._shared = {"day": shared["at"].date(), **shared}

    def quarantined(self, files: Sequence[FileEnd]) -> DataFrame:
        """Records with a reason, those of tables that were not written, and whole files."""
        from pyspark.sql import functions as F

        if self._rows is None:
            return self._spark.createDataFrame([self._whole(end) for end in files], COLUMNS)
        of_table = self._of_table()
        refused = self._rows.where((F.col("_fate") == "quarantine") | of_table.isNotNull())
        kept = self._columns(self._explained(refused, of_table))
        more = self._spark.createDataFrame([self._whole(end) for end in files], COLUMNS) if files else None
        return kept if more is None else kept.unionByName(more)

    def whole(self, files: Sequence[FileEnd]) -> pa.Table:
        """Whole files alone, in Arrow."""
        return arrow_rows(map(self._whole, files), COLUMNS)

    def of_tables(self) -> DataFrame:
        """Those of tables that were not written, alone."""
        assert self._rows is not None
        of_table = self._of_table()
        return self._columns(self._explained(self._rows.where(of_table.isNotNull()), of_table))

    def _of_table(self) -> Expression:
        """Why the table of a row is not written; null of rows whose table is, or that have none."""
        from pyspark.sql import functions as F

        if not self._unwritten:
            return F.lit(None).cast("string")
        return F.when((F.col("_fate") == "write") & ~self._stands(), _by_table(self._unwritten))

    def _explained(self, rows: DataFrame, of_table: Expression) -> DataFrame:
        from pyspark.sql import functions as F

        details = {name: self._causes[name][:MOST_DETAIL] for name in self._unwritten if name in self._causes}
        if details:
            detail = F.when(of_table.isNotNull(), _by_table(details)).otherwise(F.col("detail"))
            rows = rows.withColumn("detail", detail)
        return rows.withColumn("_reason", F.coalesce(of_table, F.col("_reason")))

    def _stands(self) -> Expression:
        """Whether the table that was not written has earlier rows of the same file (see `accounting.arriving`)."""
        from pyspark.sql import functions as F

        found = F.lit(False)
        for table in sorted(self._unwritten):
            ids = sorted(file_id for file_id, tables in self._standing.items() if table in tables)
            if ids:
                found = found | ((F.col("_table") == table) & F.col("_file_id").isin(ids))
        return found

    def parked(self) -> DataFrame:
        from pyspark.sql import functions as F

        assert self._rows is not None
        return self._columns(self._rows.where(F.col("_fate") == "park"))

    def _columns(self, rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        chosen = []
        for name, kind in (column.split() for column in COLUMNS.split(", ")):
            value = F.lit(self._shared[name]) if name in self._shared else F.col(_FROM_ROWS.get(name, name))
            chosen.append(value.cast(kind).alias(name))
        return rows.select(*chosen)

    def _whole(self, end: FileEnd) -> dict[str, Any]:
        file = end.file
        named = {"file_id": file.file_id, "bucket": file.bucket, "key": file.key, "version_id": file.version_id}
        said = {"reason": end.reason, "detail": end.detail, "record": end.head or None}
        nothing = dict.fromkeys(("line", "byte_offset", "table", "metadata"))
        return {**self._shared, **named, **said, **nothing}


def _by_table(words: Mapping[str, str]) -> Expression:
    """The words for a row's table."""
    from pyspark.sql import functions as F

    return F.create_map(*[F.lit(word) for pair in words.items() for word in pair])[F.col("_table")]
