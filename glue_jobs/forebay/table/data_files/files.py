"""The data files of all tables of a batch, written by one Spark job.

In: rows with a column that names their table, and where each table lives. Out: a `DataFile` for each Parquet file that in its
table's folder, with everything that an add action needs. Also the tables that could not be written, each with its error; the
others are whole. No reader sees the files before a commit names them; VACUUM removes files without a commit like any
unreferenced file.

Rows that carry a record's text (`shaping`) get their columns here, in the task that writes them. Each table has its own
columns, which no DataFrame of many tables could have.

Rows are brought together by table and partition, so that each gets about one file a batch; Spark splits what is larger than
`spark.sql.adaptive.advisoryPartitionSizeInBytes` over several tasks. So a table with nearly all of the rows does not wait for
one core, except without adaptive execution. Each task takes its rows in order and has one file open at a time, in memory, up to
`FILE_BYTES`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from forebay.errors import Halt
from forebay.record.kind import Struct
from forebay.table.data_files.data_file import ANSWER, ANSWER_DDL, TableFolder, Written, collect_answers, failure_of
from forebay.table.data_files.in_arrow import map_in_arrow
from forebay.table.data_files.partition import Values, destination_column, parse_destination, quoted
from forebay.table.data_files.storage import Storage
from forebay.table.data_files.upload import OpenFile, Uploads
from forebay.table.shaping import Shaper

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROW_GROUP_BYTES = 64 << 20
DESTINATION = "_forebay_destination"


def write_files(
    rows: DataFrame, places: Mapping[str, TableFolder], *, table_column: str, storage: Storage, gather: bool = True
) -> Written:
    """Runs the job. Every row must name a table of `places`; one that does not is a `Halt`, never a lost row.
    Without `gather` no row leaves its task."""
    from pyspark.sql import functions as F

    kinds = {field.name: field.dataType for field in rows.schema}
    zone = rows.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"
    partitions = {name: place.partition_columns for name, place in places.items()}
    destination = destination_column(F.col(quoted(table_column)), partitions, kinds, zone)
    placed = rows.withColumn(DESTINATION, destination).drop(table_column)
    in_order = (placed.hint("rebalance", DESTINATION) if gather else placed).sortWithinPartitions(DESTINATION)
    return collect_answers(map_in_arrow(in_order, _Task(dict(places), storage), ANSWER_DDL).collect())


def write_rows(rows: pa.Table, table: str, place: TableFolder, *, storage: Storage) -> Written:
    """The same for the rows of one table that this process holds, without a job. Its partition columns are dates or texts."""
    columns = [rows[name].cast(pa.string()).to_pylist() for name in place.partition_columns]
    values = zip(*columns, strict=True) if columns else [()] * rows.num_rows
    keys = pa.array([json.dumps([table, *(value or None for value in row)]) for row in values], pa.string())
    keyed = rows.append_column(DESTINATION, keys).sort_by(DESTINATION).combine_chunks()
    answers = _Task({table: place}, storage)(keyed.to_batches())
    return collect_answers(SimpleNamespace(**answer) for batch in answers for answer in batch.to_pylist())


# --- in the executor -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Task:
    """The work of Spark on each partition of the sorted rows."""

    places: Mapping[str, TableFolder]
    storage: Storage

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shapers: dict[str, Shaper] = {}
        with Uploads(self.storage.put) as uploads:
            for answers in self._files(groups(runs(batches)), shapers, uploads):
                if answers:
                    yield pa.RecordBatch.from_pylist(answers, schema=ANSWER)
        seen = [{"table": table, "shape": shaper.seen.as_json()} for table, shaper in shapers.items()]
        yield pa.RecordBatch.from_pylist(seen, schema=ANSWER)

    def _files(
        self, found: Iterable[tuple[str, pa.Table]], shapers: dict[str, Shaper], uploads: Uploads
    ) -> Iterator[list[dict[str, Any]]]:
        """Answers, one at a time. An error in a table's own rows fails that table: its other rows are not looked at."""
        open_file: OpenFile | None = None
        failed: set[str] = set()
        for key, group in found:
            table, values = self._destination(key)
            if table in failed:
                continue
            try:
                group, columns = self._shaped(table, group, shapers)
                goes_on = open_file is not None and open_file.takes(key, group.schema)
                path = self.places[table].path
                file = open_file if goes_on else OpenFile(key, table, path, values, group.schema, columns)
                assert file is not None
                file.write(group)
            except Exception as failure:
                failed.add(table)
                shapers.pop(table, None)
                if open_file is not None and open_file.table == table:
                    open_file = None
                yield [failure_of(table, failure)]
                continue
            if file is not open_file:
                yield uploads.add(open_file)
                open_file = file
        yield uploads.add(open_file)
        yield uploads.finish()

    def _shaped(self, table: str, group: pa.Table, shapers: dict[str, Shaper]) -> tuple[pa.Table, Struct | None]:
        shaping = self.places[table].shaping
        if shaping is None:
            return group, None
        shaper = shapers.get(table) or shapers.setdefault(table, Shaper(shaping))
        return shaper.shaped(group), shaper.columns

    def _destination(self, key: str) -> tuple[str, Values]:
        partitions = {name: place.partition_columns for name, place in self.places.items()}
        table = json.loads(key)[0]
        if table not in partitions:
            raise Halt(f"a row belongs to table {table!r}, which is not among the batch's tables")
        return parse_destination(key, partitions)


def runs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The neighbouring rows of one destination, without the column that says so. A run ends with its batch at the latest."""
    for batch in batches:
        at = batch.schema.get_field_index(DESTINATION)
        rows = batch.remove_column(at)
        encoded = pc.run_end_encode(batch.column(at))
        start = 0
        for key, end in zip(encoded.values.to_pylist(), encoded.run_ends.to_pylist(), strict=True):
            yield key, rows.slice(start, end - start)
            start = end


def groups(found: Iterable[tuple[str, pa.RecordBatch]]) -> Iterator[tuple[str, pa.Table]]:
    """The rows of one destination, as many as make a row group."""
    waiting: list[pa.RecordBatch] = []
    of, size = "", 0
    for key, run in found:
        if waiting and (key != of or size >= ROW_GROUP_BYTES):
            yield of, pa.Table.from_batches(waiting)
            waiting, size = [], 0
        of = key
        waiting.append(run)
        size += run.nbytes
    if waiting:
        yield of, pa.Table.from_batches(waiting)
