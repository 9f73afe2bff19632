"""Held records that have left, and are back: somebody restored an older version of the table that holds them.

In: that table, and the ledger, which counts the held records of each file. Out: a file with more records than the ledger
counts. Files of other services say nothing, because their retries may be under way. Files of batches that have not ended say
nothing: the ledger does not know them, or it still has the counts of an earlier version. It runs no Spark job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import Objects
from forebay.ledger.claim import Key
from forebay.ledger.data_files import data_files, opened, plainly_typed, rows_of


class BroughtBack(NamedTuple):
    """The key of a file, its held records, and how many of them the ledger counts."""

    key: str
    rows: int
    known: int


def brought_back_of(
    held: Objects, ledger: Objects, column: str, service: str, in_batches: Callable[[], Collection[Key]]
) -> BroughtBack | None:
    """`in_batches` gives the keys of open batches, and is asked between the two tables: a batch whose records were read has a
    plan then, or the ledger counts them. None also if deletion vectors hide rows, which are not read here."""
    rows = _rows_by_file(held, service)
    changing = in_batches() if rows else ()
    wanted = pa.array(rows, pa.string())
    for parquet in data_files(ledger) if rows else ():
        for batch in parquet.iter_batches(columns=["file_id", "bucket", "key", column]):
            some = plainly_typed(pa.table(batch))
            for row in some.filter(pc.is_in(some["file_id"], value_set=wanted)).to_pylist():
                if rows[row["file_id"]] > (row[column] or 0) and (row["bucket"], row["key"]) not in changing:
                    return BroughtBack(row["key"], rows[row["file_id"]], row[column] or 0)
    return None


def _rows_by_file(held: Objects, service: str) -> Counter[str]:
    """Rows of whole files have no line, and no retry chooses them."""
    rows, files = Counter[str](), read_snapshot(held).files
    if any(file.deleted_rows for file in files):
        return rows
    for file in files:
        with opened(held, file) as parquet:
            found = rows_of(parquet, [service], ["file_id", "line"])
        for count in found.filter(pc.is_valid(found["line"]))["file_id"].value_counts().to_pylist():
            rows[count["values"]] += count["counts"]
    return rows
