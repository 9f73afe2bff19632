"""A table's rows by landed file: only the column that names the file is read, from each live data file.

In: the table's objects. Out: batches of (file ids, rows). A data file that is deleted meanwhile is `TryAgain`, and one that is
deleted although the table has it is `DataFileGone`. A table with
deletion vectors is `UnsupportedTable`, because deleted rows cannot be counted by landed file here. A table that is computed
from another one is `DerivedTable`: its rows are counted where they came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forebay.errors import ForebayError, TryAgain
from forebay.lake.log.listing import BrokenLog, NoTable, UnsupportedTable
from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.snapshot import live_files, read_snapshot
from forebay.lake.objects import Objects
from forebay.lake.origin import origins_of
from forebay.ledger.data_files import SERVICE

FILES_AT_ONCE = 16
IN_FLIGHT = 256

RowsByFile = dict[str | None, int]


class DerivedTable(ForebayError):
    """The state that another table's changes are merged into. A record need not have a row in it."""

    def __init__(self, place: str, origins: tuple[str, ...]) -> None:
        super().__init__(f"{place} is computed from {', '.join(origins)}")
        self.origins = origins


class DataFileGone(TryAgain):
    """A later attempt succeeds once somebody has restored it."""


@dataclass(frozen=True)
class _Look:
    """`column` names the file; rows in which `must_have` is null do not count, nor those of a service from before the day until
    which its rows `expired`."""

    table: Objects
    column: str
    must_have: str | None
    expired: Mapping[str, str]

    def __call__(self, file: LiveFile) -> RowsByFile:
        day = dict(file.partition).get("day")
        gone = sorted(service for service, until in self.expired.items() if day and day < until)
        if file.deleted_rows:
            raise UnsupportedTable(f"{self.table.place}: deletion vectors delete rows that cannot be counted by file")
        content = self.table.open(unquote(file.path))
        if content is None:
            raise self._gone(file)
        with content:
            metadata = pq.read_metadata(content)
            if self.column not in metadata.schema.to_arrow_schema().names:
                return {None: metadata.num_rows}
            parquet = pq.ParquetFile(content, metadata=metadata, read_dictionary=[self.column])
            found: RowsByFile = {}
            wanted = [self.column, *([self.must_have] if self.must_have else []), *([SERVICE] if gone else [])]
            for group in range(parquet.num_row_groups):
                self._count(parquet.read_row_group(group, columns=wanted, use_threads=False), found, gone)
            return found

    def _gone(self, file: LiveFile) -> TryAgain:
        where = f"{self.table.place}/{file.path}"
        if all(one.path != file.path for one in live_files(self.table)):
            return TryAgain(f"{where} disappeared while it was counted; count again")
        return DataFileGone(
            f"its data file {where} was deleted; restore the object from the versions of its bucket (docs/disasters.md, "
            "Deleted objects)"
        )

    def _count(self, rows: pa.Table, found: RowsByFile, gone: Sequence[str]) -> None:
        if gone:
            rows = rows.filter(pc.invert(pc.is_in(rows[SERVICE].cast(pa.string()), pa.array(gone, pa.string()))))
        if self.must_have:
            rows = rows.filter(pc.is_valid(rows[self.must_have]))
        for count in pc.value_counts(rows[self.column].combine_chunks()):
            file_id = count["values"].as_py()
            found[file_id] = found.get(file_id, 0) + count["counts"].as_py()


def file_ids_in(table: Objects, column: str = "_file_id") -> frozenset[str]:
    """The files that have rows there. None of them where the rows cannot be counted by file."""
    try:
        found = {file_id for rows in rows_by_file(table, column=column) for file_id in rows}
    except (NoTable, BrokenLog, UnsupportedTable, DerivedTable):
        return frozenset()
    return frozenset(file_id for file_id in found if file_id is not None)


def rows_by_file(
    table: Objects,
    *,
    column: str = "_file_id",
    must_have: str | None = None,
    expired: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[RowsByFile]:
    """One answer for each data file. Raises `NoTable`, or `DerivedTable` if it is not a table of records."""
    snapshot = read_snapshot(table)
    if origins := origins_of(snapshot.configuration):
        raise DerivedTable(table.place, origins)
    files = iter(snapshot.files)
    scan = _Look(table, column, must_have, expired)
    with ThreadPoolExecutor(FILES_AT_ONCE, "rows") as threads:
        while some := list(islice(files, IN_FLIGHT)):
            yield from threads.map(scan, some)
