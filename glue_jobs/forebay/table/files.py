"""The data files of all tables of a batch, written by one Spark job.

Enters: rows with a column that names their table, and where each table lives. Leaves: a `DataFile` for each Parquet file that
now lies in its table's folder, with everything that an add action needs. Also the tables that could not be written, each with
its error; the others are whole. No reader sees the files before a commit names them; what is never committed, VACUUM removes
like any unreferenced file.

Rows that carry a record's text (`shaping`) get their columns here, in the task that writes them. Each table has its own
columns, which no DataFrame of many tables could have.

Rows are brought together by table and partition, so that each gets about one file a batch; Spark splits what is larger than
`spark.sql.adaptive.advisoryPartitionSizeInBytes` over several tasks. So a table with nearly all of the rows does not wait for
one core, except without adaptive execution. A table may ask for a `salt`, by which its partitions are spread over so many
tasks whatever they weigh. Each task takes its rows in order and has one file open at a time, in memory, up to `FILE_BYTES`.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from forebay.errors import Halt
from forebay.record.kind import Struct, columns_of_json, json_of
from forebay.record.shape import Shape
from forebay.table.in_arrow import map_in_arrow
from forebay.table.partition import Values, destination_column, folder, parse_destination, quoted, uri_path
from forebay.table.shaping import RESCUED, Shaper, Shaping
from forebay.table.statistics import Statistics
from forebay.table.storage import Storage, UploadFailed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["DataFile", "TableFolder", "Written", "write_files", "write_rows"]

FILE_BYTES = 128 << 20
ROW_GROUP_BYTES = 64 << 20
UPLOADS_AT_ONCE = 8
UPLOADING_BYTES = 64 << 20
CODEC = "zstd"
DESTINATION, SALT = "_forebay_destination", "_forebay_salt"

ANSWER = pa.schema(
    [
        ("table", pa.string()),
        ("path", pa.string()),
        ("partitions", pa.string()),
        ("size", pa.int64()),
        ("rows", pa.int64()),
        ("modified_ms", pa.int64()),
        ("stats", pa.string()),
        ("columns", pa.string()),
        ("rescued", pa.int64()),
        ("shape", pa.string()),
        ("error", pa.string()),
    ]
)
ANSWER_DDL = (
    "table string, path string, partitions string, size long, rows long, modified_ms long, stats string, "
    "columns string, rescued long, shape string, error string"
)


@dataclass(frozen=True)
class TableFolder:
    """Where a table lives, and by which columns its files are put apart."""

    path: str
    partition_columns: tuple[str, ...] = ()
    shaping: Shaping | None = None
    salt: int = 1
    """By so many tasks the rows of one of its partitions are written."""


@dataclass(frozen=True)
class DataFile:
    """One Parquet file in its table's folder. `columns` are those that its records got, and `rescued` counts the rows of which
    something did not fit."""

    table: str
    path: str
    partitions: Values
    size: int
    rows: int
    modified_ms: int
    stats: str
    columns: Struct | None = None
    rescued: int = 0

    def add_action(self) -> str:
        """The line that makes it part of the table, as the Delta protocol has it."""
        add = {
            "path": uri_path(self.path),
            "partitionValues": dict(self.partitions),
            "size": self.size,
            "modificationTime": self.modified_ms,
            "dataChange": True,
            "stats": self.stats,
        }
        return json.dumps({"add": add})


@dataclass(frozen=True)
class Written:
    """What the job did. A table is in `failed` if any of its files could not be written. `shapes` is what the records had, of
    tables whose columns come from them."""

    files: Mapping[str, list[DataFile]]
    failed: Mapping[str, str]
    shapes: Mapping[str, Shape] = field(default_factory=dict)


def write_files(rows: DataFrame, places: Mapping[str, TableFolder], *, table_column: str, storage: Storage) -> Written:
    """Runs the job. Every row must name a table of `places`; one that does not is a `Halt`, never a lost row."""
    from pyspark.sql import functions as F

    kinds = {field.name: field.dataType for field in rows.schema}
    zone = rows.sparkSession.conf.get("spark.sql.session.timeZone") or "UTC"
    partitions = {name: place.partition_columns for name, place in places.items()}
    destination = destination_column(F.col(quoted(table_column)), partitions, kinds, zone)
    keys = {DESTINATION: destination, **_salt(rows, F.col(quoted(table_column)), places)}
    gathered = rows.withColumns(keys).drop(table_column).hint("rebalance", *keys).drop(SALT)
    gathered = gathered.sortWithinPartitions(DESTINATION)
    return _sorted_out(map_in_arrow(gathered, _Task(dict(places), storage), ANSWER_DDL).collect())


def write_rows(rows: pa.Table, table: str, place: TableFolder, *, storage: Storage) -> Written:
    """The same for the rows of one table that this process holds, without a job. Its partition columns are dates or texts."""
    columns = [rows[name].cast(pa.string()).to_pylist() for name in place.partition_columns]
    values = zip(*columns, strict=True) if columns else [()] * rows.num_rows
    keys = pa.array([json.dumps([table, *(value or None for value in row)]) for row in values], pa.string())
    keyed = rows.append_column(DESTINATION, keys).sort_by(DESTINATION).combine_chunks()
    answers = _Task({table: place}, storage)(keyed.to_batches())
    return _sorted_out(SimpleNamespace(**answer) for batch in answers for answer in batch.to_pylist())


def _salt(rows: DataFrame, table: Column, places: Mapping[str, TableFolder]) -> dict[str, Column]:
    """A number computed from the row, where a table asks for it. A random one would differ when a task is repeated, and rows
    would be lost or doubled."""
    from pyspark.sql import functions as F

    salted = sorted({place.salt for place in places.values()} - {1})
    if not salted:
        return {}
    salt = F.lit(0)
    told = [quoted(f.name) for f in rows.schema.fields if "map<" not in f.dataType.simpleString()]
    for count in salted:
        mine = [name for name, place in places.items() if place.salt == count]
        salt = F.when(table.isin(mine), F.pmod(F.xxhash64(*told), F.lit(count)).cast("int")).otherwise(salt)
    return {SALT: salt}


def _sorted_out(answers: Iterable[Any]) -> Written:
    files: dict[str, list[DataFile]] = {}
    failed: dict[str, str] = {}
    shapes: dict[str, Shape] = {}
    for a in answers:
        if a.error is not None:
            failed[a.table] = a.error
        elif a.shape is not None:
            shapes.setdefault(a.table, Shape()).add(Shape.of_json(a.shape))
        else:
            files.setdefault(a.table, []).append(_data_file(a))
    return Written({table: found for table, found in files.items() if table not in failed}, failed, shapes)


def _data_file(a: Any) -> DataFile:
    partitions = tuple((name, value) for name, value in json.loads(a.partitions))
    columns = None if a.columns is None else columns_of_json(json.loads(a.columns))
    return DataFile(a.table, a.path, partitions, a.size, a.rows, a.modified_ms, a.stats, columns, a.rescued)


# --- in the executor -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Task:
    """What Spark runs on each partition of the sorted rows."""

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
        """Answers as they come. What fails in a table's own rows fails that table: its other rows are not looked at."""
        open_file: _OpenFile | None = None
        failed: set[str] = set()
        for key, group in found:
            table, values = self._destination(key)
            if table in failed:
                continue
            try:
                group, columns = self._shaped(table, group, shapers)
                goes_on = open_file is not None and open_file.takes(key, group.schema)
                path = self.places[table].path
                file = open_file if goes_on else _OpenFile(key, table, path, values, group.schema, columns)
                assert file is not None
                file.write(group)
            except Exception as failure:
                failed.add(table)
                shapers.pop(table, None)
                if open_file is not None and open_file.table == table:
                    open_file = None
                yield [_failure(table, failure)]
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
            raise Halt(f"a row is meant for table {table!r}, which is not among the batch's tables")
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


class _OpenFile:
    """A Parquet file that is being written, in memory."""

    def __init__(
        self, key: str, table: str, table_path: str, values: Values, schema: pa.Schema, columns: Struct | None
    ) -> None:
        self.key, self.table, self.table_path, self.values, self.columns = key, table, table_path, values, columns
        self.name = f"{folder(values)}part-{uuid.uuid4()}.{CODEC}.parquet"
        self.rows = self.rescued = 0
        # Partition values live in the log, not in the file.
        self._columns = [name for name in schema.names if name not in dict(values)]
        self._arrives = schema
        self._schema = pa.schema([optional(schema.field(name)) for name in self._columns])
        self._statistics = Statistics()
        self._buffer = pa.BufferOutputStream()
        self._parquet = pq.ParquetWriter(self._buffer, self._schema, compression=CODEC, store_schema=False)

    def takes(self, key: str, schema: pa.Schema) -> bool:
        return bool(self.key == key and self._arrives.equals(schema) and self._buffer.tell() < FILE_BYTES)

    def write(self, group: pa.Table) -> None:
        self.rows += group.num_rows
        if self.columns is not None:
            self.rescued += group.num_rows - group[RESCUED].null_count
        group = group.select(self._columns).cast(self._schema)
        self._statistics.observe(group)
        self._parquet.write_table(group, row_group_size=max(1, group.num_rows))

    def close(self) -> tuple[pa.Buffer, str]:
        """The bytes of the file, and its statistics."""
        self._parquet.close()
        return self._buffer.getvalue(), self._statistics.as_json()


def optional(field: pa.Field) -> pa.Field:
    """The field, which may be null, down to the innermost: what Spark calls never null is null inside of a null struct."""
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([optional(child) for child in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(kind.key_type, optional(kind.item_field))
    elif pa.types.is_list(kind):
        kind = pa.list_(optional(kind.value_field))
    return pa.field(field.name, kind)


class Uploads:
    """Finished files on their way out, a few at once: a thousand small tables must not wait for a thousand round trips.

    A file that does not arrive is an answer with an error, which fails its table and no other."""

    def __init__(self, put: Callable[[str, str, pa.Buffer], None]) -> None:
        self._put = put
        self._pool = ThreadPoolExecutor(UPLOADS_AT_ONCE)
        self._under_way: deque[tuple[int, Future[dict[str, Any]]]] = deque()
        self._bytes = 0

    def __enter__(self) -> Uploads:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def add(self, file: _OpenFile | None) -> list[dict[str, Any]]:
        """Sends it off, if there is one; answers of those that have arrived meanwhile."""
        if file is None:
            return []
        try:
            content, stats = file.close()
        except Exception as failure:
            return [_failure(file.table, failure)]
        self._bytes += content.size
        self._under_way.append((content.size, self._pool.submit(self._send, file, content, stats)))
        answers = []
        while self._under_way and (self._bytes > UPLOADING_BYTES or self._under_way[0][1].done()):
            answers.append(self._oldest())
        return answers

    def finish(self) -> list[dict[str, Any]]:
        return [self._oldest() for _ in range(len(self._under_way))]

    def _oldest(self) -> dict[str, Any]:
        size, answer = self._under_way.popleft()
        self._bytes -= size
        return answer.result()

    def _send(self, file: _OpenFile, content: pa.Buffer, stats: str) -> dict[str, Any]:
        try:
            self._put(file.table_path, file.name, content)
        except (OSError, UploadFailed) as failure:
            return _failure(file.table, failure)
        return {
            "table": file.table,
            "path": file.name,
            "partitions": json.dumps(file.values),
            "size": content.size,
            "rows": file.rows,
            "modified_ms": int(time.time() * 1000),
            "stats": stats,
            "columns": None if file.columns is None else json.dumps(json_of(file.columns)),
            "rescued": file.rescued,
        }


def _failure(table: str, failure: Exception) -> dict[str, Any]:
    return {"table": table, "error": f"{type(failure).__name__}: {failure}"}
