"""The ledger's data files, one after the other, without Spark.

In: the ledger's objects. Out: each data file, open while it is looked at; none before the first batch. `TryAgain` where one
was deleted meanwhile, as compaction and VACUUM may do.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

import pyarrow.parquet as pq

from forebay.errors import TryAgain
from forebay.lake.log.listing import NoTable
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import Objects

__all__ = ["data_files"]


def data_files(ledger: Objects) -> Iterator[pq.ParquetFile]:
    try:
        files = read_snapshot(ledger).files
    except NoTable:
        return
    for file in files:
        content = ledger.open(unquote(file.path))
        if content is None:
            raise TryAgain(f"{ledger.place}/{file.path} was deleted while it was read; run this again")
        with content, pq.ParquetFile(content) as parquet:
            yield parquet
