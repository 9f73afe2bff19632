"""Rewrites data files that no log names yet, without some of their rows.

In: data files, and the rows of each that stay. Out: the files that replace them. A file that keeps no rows gets no
replacement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from forebay.table.data_files.data_file import DataFile, failure_of
from forebay.table.data_files.storage import DownloadFailed, Storage
from forebay.table.data_files.upload import OpenFile, Uploads


@dataclass(frozen=True)
class FewerRows:
    """One data file, and the rows that stay. `stay` has a bit for each row."""

    table_path: str
    file: DataFile
    stay: npt.NDArray[Any]


def written_again(storage: Storage, some: Iterable[FewerRows]) -> Iterator[dict[str, Any]]:
    """Answers as `data_file` has them."""
    with Uploads(storage.put) as uploads:
        for one in some:
            try:
                yield from uploads.add(_file_of(storage, one))
            except (OSError, DownloadFailed) as failure:
                yield failure_of(one.file.table, failure)
        yield from uploads.finish()


def _file_of(storage: Storage, one: FewerRows) -> OpenFile:
    rows = pq.read_table(pa.BufferReader(storage.get(one.table_path, one.file.path))).filter(pa.array(one.stay))
    file = OpenFile(one.file.table, one.file.table, one.table_path, one.file.partitions, rows.schema, one.file.columns)
    file.write(rows)
    return file
