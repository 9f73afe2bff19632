"""Data files of the ledger, or of a table beside it, without Spark.

In: the table's objects. Out: each data file, open while it is read; none before the first batch. `TryAgain` if one was deleted
in the meantime, as compaction and VACUUM may do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forebay.errors import TryAgain
from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.snapshot import live_files
from forebay.lake.objects import Objects
from forebay.lake.rows import python_rows
from forebay.threads import in_threads

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)
DAY, SERVICE, KEY_HASH = "day", "service", "key_hash"
READ_AT_ONCE = 8
FEW_FILES, FEW_BYTES = 100, 16 << 20
"""The most that a driver reads of the ledger without Spark."""


def data_files(table: Objects, *, since: date | None = None) -> Iterator[pq.ParquetFile]:
    """All, or those of the days since then."""
    for file in live_files(table):
        if since is None or (dict(file.partition).get(DAY) or str(since)) >= str(since):
            with opened(table, file) as parquet:
                yield parquet


@contextmanager
def opened(table: Objects, file: LiveFile) -> Iterator[pq.ParquetFile]:
    content = table.open(unquote(file.path))
    if content is None:
        raise TryAgain(f"{table.place}/{file.path} was deleted while it was read; run the command again")
    with content, pq.ParquetFile(content) as parquet:
        yield parquet


def plainly_typed(rows: Rows) -> Rows:
    """delta-rs writes texts as views, for which Arrow lacks functions."""
    kinds = [(f.name, pa.string() if pa.types.is_string_view(f.type) else f.type) for f in rows.schema]
    return rows.cast(pa.schema(kinds))


def rows_of(parquet: pq.ParquetFile, services: Collection[str], columns: Sequence[str]) -> pa.Table:
    """Rows of the ledger that these services wrote, in these columns. Those of no service are everybody's."""
    if services_in(parquet) <= set(services):
        return plainly_typed(parquet.read(columns=list(columns)))
    rows = plainly_typed(parquet.read(columns=[*columns, SERVICE]))
    of_them = pc.field(SERVICE).is_null() | pc.field(SERVICE).isin(list(services))
    return rows.filter(of_them).select(list(columns))


def rows_of_keys(
    table: Objects, live: Iterable[LiveFile], days: Collection[date], hashes: Collection[int], services: Collection[str]
) -> list[dict[str, Any]] | None:
    """The ledger's rows of these days, keys and services. None where a driver should not read them alone: they are many, or
    deletion vectors hide some."""
    texts = set(map(str, days))
    files = [file for file in live if dict(file.partition)[DAY] in texts]
    much = len(files) > FEW_FILES or sum(file.bytes for file in files) > FEW_BYTES
    if much or any(file.deleted_rows for file in files):
        return None
    wanted = pa.array(hashes, pa.int64())
    found = in_threads(partial(_rows_of_keys, table, wanted, services), files, READ_AT_ONCE)
    return [row for rows in found for row in rows]


def _rows_of_keys(table: Objects, wanted: pa.Array, services: Collection[str], file: LiveFile) -> list[dict[str, Any]]:
    with opened(table, file) as parquet:
        chosen = pc.is_in(parquet.read(columns=[KEY_HASH], use_threads=False)[KEY_HASH], value_set=wanted)
        found = plainly_typed(parquet.read(use_threads=False)).filter(chosen) if pc.any(chosen).as_py() else None
        rows = [] if found is None else python_rows(found)
    day = date.fromisoformat(dict(file.partition)[DAY] or "")
    ours = (row for row in rows if row.get(SERVICE) in (None, *services))
    return [{**row, DAY: day, "tables": None if row["tables"] is None else dict(row["tables"])} for row in ours]


def pairs_of(table: Objects, wanted: pa.Array, by: str, other: str) -> list[tuple[Any, Any]]:
    """The values of two columns, of the rows that have a `wanted` value in the first one. The ledger may be large: of most data
    files, only that column is read."""
    found = in_threads(partial(_pairs_of, table, wanted, by, other), live_files(table), READ_AT_ONCE)
    return [pair for pairs in found for pair in pairs]


def _pairs_of(table: Objects, wanted: pa.Array, by: str, other: str, file: LiveFile) -> list[tuple[Any, Any]]:
    with opened(table, file) as parquet:
        values = plainly_typed(parquet.read(columns=[by]))[by]
        chosen = pc.is_in(values, value_set=wanted)
        if not pc.any(chosen).as_py():
            return []
        others = plainly_typed(parquet.read(columns=[other]))[other]
    return list(zip(values.filter(chosen).to_pylist(), others.filter(chosen).to_pylist(), strict=True))


def services_in(parquet: pq.ParquetFile) -> frozenset[str]:
    """The services with rows in this data file. Its index usually tells: a batch is one service's."""
    return values_in(parquet, SERVICE) if SERVICE in parquet.schema_arrow.names else frozenset()


def values_in(parquet: pq.ParquetFile, column: str) -> frozenset[str]:
    """The values of a column of texts; from its statistics, if each part of the file has only one value."""
    values = [_only_value(parquet.metadata.row_group(n), column) for n in range(parquet.num_row_groups)]
    if None not in values:
        return frozenset(value for value in values if value is not None)
    return frozenset(plainly_typed(parquet.read(columns=[column]))[column].drop_null().unique().to_pylist())


def _only_value(group: pq.RowGroupMetaData, name: str) -> str | None:
    """The only value of a text column, if its statistics say that there is only one."""
    columns = (group.column(n) for n in range(group.num_columns))
    statistics = next(column.statistics for column in columns if column.path_in_schema == name)
    if statistics is None or not statistics.has_min_max or statistics.min != statistics.max:
        return None
    return str(statistics.min)
