"""The data files of a batch's rows for many tables, written before anything is committed.

In: rows with a column that names their table, the tables, and the batch's transaction. Out, for each table: a `StagedTable`,
`Skipped` (it has this batch already, so nothing was written), or `Failed` (with the reason; the other tables are written). A
table without rows is not in the answer.

It takes two steps. It looks at every table's log, many at once. It writes all data files in one Spark job. Readers do not see
files that are never committed.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from forebay.counted import counted
from forebay.errors import ForebayError, Halt, InvalidConfiguration
from forebay.events import Emit
from forebay.record.conform import writable
from forebay.record.growth import agrees, grown, keeps_spelling, left_out
from forebay.record.kind import Struct, json_of
from forebay.record.shape import Shape
from forebay.table.commit import Txn
from forebay.table.data_files.data_file import DataFile, TableFolder, Written
from forebay.table.data_files.files import write_files, write_rows
from forebay.table.data_files.partition import quoted
from forebay.table.data_files.storage import storage_as
from forebay.table.destination import Destination, Failed, Skipped
from forebay.table.events import ColumnsLeftOut
from forebay.table.kernel import Seen, TableLogs
from forebay.table.ready import Ready, prepare
from forebay.table.shaping import DOCUMENT, Shaping, fixed_columns
from forebay.table.staged import StagedTable
from forebay.threads import in_threads

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

StagedOrNot = StagedTable | Skipped | Failed


class FilesNotWritten(ForebayError):
    """A data file of this table did not reach its folder."""


def look(logs: TableLogs, path: str, txn: Txn, *, again: bool = False) -> Seen | Skipped | None:
    """The table at a path, or that it has this transaction."""
    seen, last = logs.look_for(path, txn.app_id, again=again)
    return Skipped() if last >= txn.version else seen


class Staging(ABC):
    """One call. `expected` rows of each table are checked: other numbers are a `Halt`."""

    def __init__(
        self,
        logs: TableLogs,
        columns: StructType,
        txn: Txn,
        emit: Emit,
        expected: Mapping[str, int] | None,
    ) -> None:
        self.logs, self.columns, self.txn, self.emit, self.expected = logs, columns, txn, emit, expected or {}

    @abstractmethod
    def _write(self, places: Mapping[str, TableFolder], left_out: Sequence[str]) -> Written:
        """The data files of these tables. Every row belongs to one of them, or to one that is left out."""

    @abstractmethod
    def _write_again(self, places: Mapping[str, TableFolder]) -> Written:
        """The data files of some of the tables, for other columns than at first."""

    def run(self, tables: Sequence[Destination], pool: int) -> dict[str, StagedOrNot]:
        looked = dict(zip((table.name for table in tables), in_threads(self._prepare, tables, pool), strict=True))
        ready = {name: found for name, found in looked.items() if isinstance(found, Ready)}
        outcomes: dict[str, StagedOrNot] = {
            name: found for name, found in looked.items() if not isinstance(found, Ready)
        }
        if not ready:
            return outcomes
        written = self._write({name: found.place for name, found in ready.items()}, left_out=list(outcomes))
        columns, written = self._decided(ready, written)
        written = self._with_final_columns(ready, columns, written)
        self._must_hold(ready, written)
        outcomes |= {name: Failed(FilesNotWritten(error)) for name, error in written.failed.items()}
        fixed = self.columns.json()
        for name, files in written.files.items():
            made = tuple(replace(file, columns=None) for file in files)
            partitions = ready[name].place.partition_columns
            outcomes[name] = StagedTable(name, fixed, columns[name], partitions, made, ready=ready[name])
        return outcomes

    # --- look ---

    def _prepare(self, table: Destination) -> Ready | Skipped | Failed:
        """Everything that can be wrong with a table is found out here, before there are files."""
        try:
            seen = self._look(table)
            return seen if isinstance(seen, Skipped) else prepare(table, seen, self.columns)
        except ForebayError as problem:
            return Failed(problem)

    def _look(self, table: Destination) -> Seen | Skipped | None:
        return look(self.logs, table.path, self.txn)

    # --- write ---

    def _decided(self, ready: Mapping[str, Ready], written: Written) -> tuple[dict[str, Struct | None], Written]:
        """The columns of each table. A table for which they cannot be decided fails, and no other."""
        columns, failed = dict[str, Struct | None](), dict[str, str]()
        for name in written.files:
            try:
                columns[name] = self._columns_of(ready[name], written)
            except Exception as failure:
                failed[name] = f"{type(failure).__name__}: {failure}"
        files = {name: found for name, found in written.files.items() if name not in failed}
        return columns, Written(files, {**written.failed, **failed}, written.shapes)

    def _columns_of(self, ready: Ready, written: Written) -> Struct | None:
        """The columns that the table gets from its records, now that all of them were seen."""
        if ready.known is None or ready.table.rules is None:
            return None
        known, shape, rules = ready.known, written.shapes.get(ready.table.name, Shape()), ready.table.rules
        if more := left_out(known, shape, rules):
            self.emit(ColumnsLeftOut(table=ready.table.name, such_as=".".join(more[0]), columns=len(more)))
        return grown(known, shape, rules)

    def _with_final_columns(
        self, ready: Mapping[str, Ready], columns: Mapping[str, Struct | None], written: Written
    ) -> Written:
        """Tasks decide about new columns by the records that they see. Where all records together say otherwise, the table's
        files are written again. The first ones are in no log, and VACUUM removes them."""
        changed = {}
        for name, files in written.files.items():
            target = columns[name]
            if target is not None and not all(f.columns is None or agrees(f.columns, writable(target)) for f in files):
                shaping = ready[name].shaping(target, final=True)
                changed[name] = replace(ready[name].place, shaping=shaping)
        if not changed:
            return written
        again = self._write_again(changed)
        kept = {name: found for name, found in written.files.items() if name not in again.failed}
        return Written({**kept, **again.files}, {**written.failed, **again.failed}, written.shapes)

    def _must_hold(self, ready: Mapping[str, Ready], written: Written) -> None:
        """Spark reads rows again when it loses them, and S3 may answer otherwise then. Nothing is committed yet."""
        for name in sorted((ready.keys() & self.expected.keys()) - written.failed.keys()):
            rows = sum(file.rows for file in written.files.get(name, ()))
            if rows != self.expected[name]:
                wanted = counted(self.expected[name], "row", "was")
                raise Halt(
                    f"{name}: {wanted} were counted, but its data files hold {rows}. The landed files were read again, and had "
                    "changed. Nothing of them was committed. The next start repeats the batch"
                )


class StagingFromSpark(Staging):
    """Rows for many tables, written by one Spark job."""

    def __init__(
        self,
        logs: TableLogs,
        rows: DataFrame,
        txn: Txn,
        emit: Emit,
        expected: Mapping[str, int] | None,
        *,
        table_column: str = "_table",
        gather: bool = True,
    ) -> None:
        super().__init__(logs, _columns_before(rows.drop(table_column).schema), txn, emit, expected)
        self.rows, self.table_column, self.gather = rows, table_column, gather

    def _write(self, places: Mapping[str, TableFolder], left_out: Sequence[str]) -> Written:
        from pyspark.sql import functions as F

        rows = self.rows
        if left_out:
            rows = rows.where(~F.coalesce(F.col(quoted(self.table_column)).isin(list(left_out)), F.lit(False)))
        return self._write_files(rows, places)

    def _write_again(self, places: Mapping[str, TableFolder]) -> Written:
        from pyspark.sql import functions as F

        return self._write_files(self.rows.where(F.col(quoted(self.table_column)).isin(list(places))), places)

    def _write_files(self, rows: DataFrame, places: Mapping[str, TableFolder]) -> Written:
        storage = storage_as(os.environ)
        return write_files(rows, places, table_column=self.table_column, storage=storage, gather=self.gather)


class StagingFromDriver(Staging):
    """Rows of one table, written by this process."""

    def __init__(
        self, logs: TableLogs, rows: pa.Table, txn: Txn, emit: Emit, expected: Mapping[str, int] | None
    ) -> None:
        from pyspark.sql.pandas.types import from_arrow_schema

        super().__init__(logs, from_arrow_schema(rows.schema), txn, emit, expected)
        self.rows = rows

    def _write(self, places: Mapping[str, TableFolder], left_out: Sequence[str]) -> Written:
        ((name, place),) = places.items()
        return write_rows(self.rows, name, place, storage=storage_as(os.environ))

    def _write_again(self, places: Mapping[str, TableFolder]) -> Written:
        return self._write(places, ())


class FilesDoNotFit(ForebayError):
    """Data files were written for a table that has other partitions, or columns in which their values cannot be spelled as
    they came. `places` are the tables, with the columns that their files should have had."""

    def __init__(self, why: str, places: Mapping[str, TableFolder]) -> None:
        super().__init__(why)
        self.places = places


class StagingFromTasks(Staging):
    """Rows of many tables whose data files are written already, by tasks that knew some of the tables, or none.
    Where one of the tables needs other columns, its data files are read and written again, or it is `FilesDoNotFit`.
    The caller has just seen that there are no tables by the names `absent`."""

    def __init__(
        self,
        spark: SparkSession,
        logs: TableLogs,
        columns: StructType,
        txn: Txn,
        emit: Emit,
        expected: Mapping[str, int],
        written: Written,
        absent: Collection[str] = (),
    ) -> None:
        super().__init__(logs, columns, txn, emit, expected)
        self.spark, self.written, self.absent = spark, written, absent

    def _look(self, table: Destination) -> Seen | Skipped | None:
        return None if table.name in self.absent else super()._look(table)

    def _prepare(self, table: Destination) -> Ready | Skipped | Failed:
        found = super()._prepare(table)
        columns = found.place.partition_columns if isinstance(found, Ready) else ()
        odd = [(name, self.columns[name].dataType.simpleString()) for name in columns if not self._names_folders(name)]
        if not odd:
            return found
        (name, kind), *_ = odd
        problem = f"is partitioned by {name}, a {kind}: its text differs between versions of Java"
        hint = "partition it by another declared column (schema settle rewrites it), then retry its records"
        return Failed(InvalidConfiguration.one(f"table {table.name}", problem, hint))

    def _names_folders(self, column: str) -> bool:
        from pyspark.sql.types import DoubleType, FloatType

        return not isinstance(self.columns[column].dataType, DoubleType | FloatType)

    def _write(self, places: Mapping[str, TableFolder], left_out: Sequence[str]) -> Written:
        failed = {name: why for name, why in self.written.failed.items() if name in places}
        mine = {name: self.written.files[name] for name in places if name in self.written.files and name not in failed}
        for name, files in mine.items():
            if not all(tuple(n for n, _ in f.partitions) == tuple(places[name].partition_columns) for f in files):
                raise FilesDoNotFit(f"{name} has other partition columns", places)
            shape = self.written.shapes.get(name, Shape())
            if _left_out_what_is_known(files, places[name].shaping, shape):
                raise FilesDoNotFit(f"{name} has columns that its tasks did not know", places)
        return Written(mine, failed, self.written.shapes)

    def _write_again(self, places: Mapping[str, TableFolder]) -> Written:
        from pyspark.sql import DataFrame

        for name, place in places.items():
            columns = place.shaping.columns if place.shaping else Struct()
            if not all(keeps_spelling(file.columns or Struct(), columns) for file in self.written.files[name]):
                raise FilesDoNotFit(f"{name} has columns of other types", places)
        rows = reduce(DataFrame.unionByName, (part for name, at in places.items() for part in self._records(name, at)))
        return write_files(rows, places, table_column="_table", storage=storage_as(os.environ))

    def _records(self, name: str, place: TableFolder) -> Iterator[DataFrame]:
        """The rows of a table's data files. Tasks may have given them different columns."""
        from pyspark.sql import functions as F

        alike: dict[str, list[DataFile]] = {}
        for file in self.written.files[name]:
            alike.setdefault(json.dumps(json_of(file.columns or Struct())), []).append(file)
        for files in alike.values():
            some = StagedTable(name, self.columns.json(), files[0].columns, place.partition_columns, tuple(files))
            rules = None if place.shaping is None else place.shaping.rules
            yield some.records(self.spark, place.path, rules).withColumn("_table", F.lit(name))


def _left_out_what_is_known(files: Sequence[DataFile], shaping: Shaping | None, shape: Shape) -> bool:
    """Whether tasks that did not know all columns of the table may have left out values of these columns. A task that takes
    every field for a new column leaves out none."""
    if shaping is None or all(f.columns is None or agrees(shaping.columns, f.columns) for f in files):
        return False
    return not shaping.rules.grows or bool(left_out(Struct(), shape, shaping.rules))


def _columns_before(rows: StructType) -> StructType:
    """Those that are known before a record is looked at."""
    return fixed_columns(rows) if DOCUMENT in rows.names else rows
