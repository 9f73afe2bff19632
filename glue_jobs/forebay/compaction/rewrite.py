"""Small files rewritten into large ones: no row changes, and a reader of the table's stream sees nothing new.

In: a table's path. Out: how many files it had and has. Delta's OPTIMIZE commits with `dataChange=false`; where another
commit removes the same files first it fails, and the table is as it was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from forebay.errors import Misdeclared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Compacted", "compact_table"]


@dataclass(frozen=True)
class Compacted:
    files_before: int
    files_after: int


def compact_table(spark: SparkSession, path: str) -> Compacted:
    """Bin-packs the table's files. Run twice, the second time finds nothing to do."""
    from delta.tables import DeltaTable

    if not DeltaTable.isDeltaTable(spark, path):
        raise Misdeclared.one(path, "is not a Delta table", "`forebay tables` lists them")
    table = DeltaTable.forPath(spark, path)
    before = table.detail().select("numFiles").collect()[0].numFiles
    table.optimize().executeCompaction()
    after = table.detail().select("numFiles").collect()[0].numFiles
    return Compacted(before, after)
