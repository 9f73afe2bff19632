"""One batch of rows, appended to many tables, exactly once to each.

Enters: rows with a column that names their table, the tables, and the batch's transaction. Leaves, for each table:
`Appended`, `Skipped` (it has this batch already, so nothing was written), or `Failed` (with the reason; the other tables
are not held up). A table without rows is not in the answer and gets no commit. Called again with the same transaction, it
does what is left to do.

It takes three steps, many tables at once in each. It looks at every table's log. It writes all data files in one Spark job.
It commits each table by adding its files to its log, without a Spark job.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from forebay.errors import ForebayError, Halt
from forebay.events import Emit
from forebay.record.conform import writable
from forebay.record.growth import agrees, grown, left_out
from forebay.record.kind import Struct
from forebay.record.shape import Shape
from forebay.table.commit import CommitConflict, CommitRefused, Committed, CommitUnknown, LogFailed, Repeated, Txn
from forebay.table.data_file import DataFile, TableFolder, Written
from forebay.table.destination import Appended, AppendResult, Destination, Failed, Skipped
from forebay.table.events import ColumnsAdded, ColumnsLeftOut, TableCreated, TypesWidened
from forebay.table.files import write_files, write_rows
from forebay.table.kernel import Seen, TableLogs
from forebay.table.partition import quoted
from forebay.table.ready import Ready, fit, prepare, with_wider_types
from forebay.table.schema import merged, misfits, new_columns, nullable
from forebay.table.shaping import DOCUMENT, fixed_columns, spark_columns
from forebay.table.storage import storage_as
from forebay.table.widening import widenings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["append", "append_from_driver"]

ATTEMPTS = 5
"""How often a table may change under us, in one batch, before a person should ask who changes it."""


class FilesNotWritten(ForebayError):
    """A data file of this table did not reach its folder."""


class ChangesTooOften(ForebayError):
    """Somebody else is changing this table while it is being written."""


class OtherwiseNow(ChangesTooOften):
    """The table is not any more what its files were written for: they must be written anew."""


def append(
    spark: SparkSession,
    rows: DataFrame,
    tables: Sequence[Destination],
    *,
    txn: Txn,
    pool: int = 8,
    table_column: str = "_table",
    logs: TableLogs | None = None,
    emit: Emit = lambda event: None,
    expected: Mapping[str, int] | None = None,
    gather: bool = True,
) -> dict[str, AppendResult]:
    """Appends `rows` to `tables`, once for each `txn`. Pass the same `logs` with every batch, and they are not listed anew.
    Where tables have rules, the rows carry the texts of their records as well (`forebay.table.shaping`). `expected` rows of
    each table are checked before anything is committed: other numbers are a `Halt`. Without `gather` no row leaves its task:
    each makes a file for each partition."""
    own_logs = logs is None
    logs = logs or TableLogs(spark, emit=emit)
    try:
        outcomes = _FromSpark(logs, rows, table_column, txn, emit, expected, gather).run(tables, pool)
        otherwise = [table for table in tables if _may_fit_now(outcomes.get(table.name))]
        if otherwise:
            theirs = rows.where(rows[quoted(table_column)].isin([table.name for table in otherwise]))
            outcomes |= _FromSpark(logs, theirs, table_column, txn, emit, expected, gather).run(otherwise, pool)
        return outcomes
    finally:
        if own_logs:
            logs.close()


def append_from_driver(
    rows: pa.Table, table: Destination, *, txn: Txn, logs: TableLogs, emit: Emit, expected: int | None = None
) -> AppendResult:
    """Appends the few rows that this process holds to one table, once for each `txn`. It starts no Spark job."""
    checked = None if expected is None else {table.name: expected}
    return _FromDriver(logs, rows, txn, emit, checked).run([table], 1)[table.name]


def _may_fit_now(outcome: AppendResult | None) -> bool:
    """A table that was settled since we looked at it last."""
    return isinstance(outcome, Failed) and isinstance(outcome.error, OtherwiseNow)


class _FanOut(ABC):
    """One call of `append`; what its steps share."""

    def __init__(
        self, logs: TableLogs, columns: StructType, txn: Txn, emit: Emit, expected: Mapping[str, int] | None
    ) -> None:
        self.logs, self.columns, self.txn, self.emit, self.expected = logs, columns, txn, emit, expected or {}

    @abstractmethod
    def _write(self, places: Mapping[str, TableFolder], left_out: Sequence[str]) -> Written:
        """The data files of these tables. Every row belongs to one of them, or to one that is left out."""

    @abstractmethod
    def _write_again(self, places: Mapping[str, TableFolder]) -> Written:
        """The data files of some of the tables, for other columns than at first."""

    def run(self, tables: Sequence[Destination], pool: int) -> dict[str, AppendResult]:
        with ThreadPoolExecutor(pool, "tables") as threads:
            looked = dict(zip((table.name for table in tables), threads.map(self._prepare, tables), strict=True))
            ready = {name: found for name, found in looked.items() if isinstance(found, Ready)}
            outcomes: dict[str, AppendResult] = {
                name: found for name, found in looked.items() if not isinstance(found, Ready)
            }
            if not ready:
                return outcomes
            written = self._write({name: found.place for name, found in ready.items()}, left_out=list(outcomes))
            columns, written = self._decided(ready, written)
            written = self._with_final_columns(ready, columns, written)
            self._must_hold(ready, written)
            outcomes |= {name: Failed(FilesNotWritten(error)) for name, error in written.failed.items()}
            commits = threads.map(
                lambda name: self._commit(ready[name], written.files[name], columns[name]), written.files
            )
            return outcomes | dict(zip(written.files, commits, strict=True))

    # --- look ---

    def _prepare(self, table: Destination) -> Ready | Skipped | Failed:
        """Everything that can be wrong with a table is found out here, before there are files."""
        try:
            seen = self._look(table.path)
            if isinstance(seen, Skipped):
                return seen
            return prepare(table, seen, self.columns)
        except ForebayError as problem:
            return Failed(problem)

    def _look(self, path: str, *, again: bool = False) -> Seen | Skipped | None:
        """What we remember of a table may be out of date: where its log is not what it was, it is read anew."""
        try:
            seen = self.logs.look(path, again=again)
            if seen is not None and self.logs.last_version(seen, self.txn.app_id) >= self.txn.version:
                return Skipped()
            return seen
        except LogFailed:
            if again:
                raise
            return self._look(path, again=True)

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
        """The columns that the table is to have from its records, now that all of them were seen."""
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
        files are written again; what was written for nothing is in no log, and VACUUM removes it."""
        changed = {}
        for name, files in written.files.items():
            target = columns[name]
            if target is not None and not all(f.columns is None or agrees(f.columns, writable(target)) for f in files):
                changed[name] = replace(ready[name].place, shaping=ready[name].shaping(target, final=True))
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
                raise Halt(
                    f"{name}: {self.expected[name]} rows were counted, but its data files hold {rows}: the files were read "
                    "anew meanwhile, and otherwise. Nothing of them was committed; the batch is repeated with the next start"
                )

    # --- commit ---

    def _commit(self, ready: Ready, files: Sequence[DataFile], columns: Struct | None) -> AppendResult:
        began = time.monotonic()
        outcome: Committed | Skipped | Failed
        try:
            outcome = self._sent(ready, files, columns)
        except LogFailed as failure:
            outcome = self._looked_for(ready.table, failure)
        except ForebayError as problem:
            outcome = Failed(problem)
        if not isinstance(outcome, Committed):
            return outcome
        return Appended(
            version=outcome.version,
            files=len(files),
            rows=sum(file.rows for file in files),
            bytes=sum(file.size for file in files),
            rescued=sum(file.rescued for file in files),
            seconds=round(time.monotonic() - began, 3),
        )

    def _sent(self, ready: Ready, files: Sequence[DataFile], columns: Struct | None) -> Committed | Skipped:
        table, seen = ready.table, ready.seen
        actions = [file.add_action() for file in files]
        schema = self._schema_with(columns)
        for _ in range(ATTEMPTS):
            missing: tuple[str, ...] = ()
            wider: StructType | None = None
            if seen is None:
                partitions, properties = table.partition_columns, table.properties
                outcome = self.logs.create(
                    table.path, schema, partitions, properties, actions, self.txn, cluster_columns=table.cluster_columns
                )
            elif self.logs.set_properties(seen, table.properties):
                outcome = CommitConflict()  # the table is another one now
            else:
                missing = new_columns(schema, seen.schema)
                wider = with_wider_types(table, seen, self.columns)
                more = merged(wider or seen.schema, schema) if missing or wider else None
                outcome = self.logs.append(seen, actions, self.txn, schema=more, widening=wider is not None)
            if isinstance(outcome, Repeated):
                return Skipped()
            if isinstance(outcome, Committed):
                if seen is None:
                    self.emit(TableCreated(table=table.name, path=table.path))
                if missing:
                    self.emit(ColumnsAdded(table=table.name, columns=missing))
                if seen is not None and wider is not None:
                    self.emit(TypesWidened(table=table.name, columns=widenings(seen.schema, wider)))
                return outcome
            found = self._look_after_conflict(ready, schema)
            if isinstance(found, Skipped):
                return found
            seen = found
        raise ChangesTooOften(f"table {table.name} at {table.path} was changed by others {ATTEMPTS} times meanwhile")

    def _schema_with(self, columns: Struct | None) -> StructType:
        from pyspark.sql.types import StructType

        from_records = spark_columns(writable(columns)) if columns is not None else []
        return nullable(StructType([*self.columns.fields, *from_records]))

    def _look_after_conflict(self, ready: Ready, schema: StructType) -> Seen | Skipped | None:
        """The files are written; does the table as it is now still take them?"""
        seen = self._look(ready.table.path, again=True)
        if isinstance(seen, Skipped):
            return seen
        fit(ready.table, seen, self.columns)
        now = (with_wider_types(ready.table, seen, self.columns) or seen.schema) if seen is not None else None
        problems = list(misfits(schema, now)) if now is not None else []
        if problems:
            raise OtherwiseNow(f"table {ready.table.name} got other columns meanwhile: {problems[0]}")
        if Ready(ready.table, seen, ready.known).place != ready.place:
            raise OtherwiseNow(f"table {ready.table.name} got other partition columns meanwhile")
        return seen

    def _looked_for(self, table: Destination, failure: LogFailed) -> Committed | Failed:
        """A commit whose answer was lost may have arrived, or may arrive later: a PUT can lie in a queue of the network. To say
        `Failed` of it would invite a duplicate."""
        if isinstance(failure, CommitRefused):
            return Failed(failure)
        try:
            seen = self.logs.look(table.path, again=True)
            if seen is not None and self.logs.last_version(seen, self.txn.app_id) >= self.txn.version:
                return Committed(seen.version)
        except LogFailed:
            return Failed(failure, may_be_in=True)
        return Failed(failure, may_be_in=isinstance(failure, CommitUnknown))


class _FromSpark(_FanOut):
    """Rows for many tables, written by one Spark job."""

    def __init__(
        self,
        logs: TableLogs,
        rows: DataFrame,
        table_column: str,
        txn: Txn,
        emit: Emit,
        expected: Mapping[str, int] | None,
        gather: bool,
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


class _FromDriver(_FanOut):
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


def _columns_before(rows: StructType) -> StructType:
    """Those that are known before a record is looked at."""
    return fixed_columns(rows) if DOCUMENT in rows.names else rows
