"""Data files of the ledger, or of a table beside it, without Spark.

In: the table's objects. Out: each data file, open while it is looked at; none before the first batch. `TryAgain` where one
was deleted meanwhile, as compaction and VACUUM may do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

import pyarrow.parquet as pq

from forebay.errors import TryAgain
from forebay.lake.log.listing import NoTable
from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import Objects

__all__ = ["data_files", "opened"]


def data_files(table: Objects) -> Iterator[pq.ParquetFile]:
    try:
        files = read_snapshot(table).files
    except NoTable:
        return
    for file in files:
        with opened(table, file) as parquet:
            yield parquet


@contextmanager
def opened(table: Objects, file: LiveFile) -> Iterator[pq.ParquetFile]:
    content = table.open(unquote(file.path))
    if content is None:
        raise TryAgain(f"{table.place}/{file.path} was deleted while it was read; run this again")
    with content, pq.ParquetFile(content) as parquet:
        yield parquet
