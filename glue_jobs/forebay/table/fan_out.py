"""One batch of rows, appended to many tables, exactly once to each.

Enters: rows with a column that names their table, the tables, and the batch's transaction. Leaves, for each table:
`Appended`, `Skipped` (it has this batch already, so nothing was written), or `Failed` (with the reason; the other tables
are not held up). A table without rows is not in the answer and gets no commit. Called again with the same transaction, it
does what is left to do.

It takes three steps, many tables at once in each: look at every table's log; write all data files in one Spark job; commit
each table by adding its files to its log, which no Spark job is needed for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forebay.errors import ForebayError, Misdeclared, Problem
from forebay.events import Emit
from forebay.table.events import ColumnsAdded, TableCreated
from forebay.table.files import DataFile, Place, Written, write_files
from forebay.table.kernel import NO_VERSION, Committed, LogFailed, Repeated, Seen, TableLogs, Txn
from forebay.table.partition import quoted
from forebay.table.schema import misfits, new_columns, nullable, unwritable
from forebay.table.storage import storage_as

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Appended", "Destination", "Failed", "Outcome", "Skipped", "Txn", "append", "last_version"]

ATTEMPTS = 5
"""How often a table may change under us, in one batch, before a person should ask who changes it."""


@dataclass(frozen=True)
class Destination:
    """A table: its name in the rows, where it lives, and what it is made with if it is not there yet."""

    name: str
    path: str
    partition_columns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Appended:
    """The rows are in the table, as of this version of it."""

    version: int
    files: int
    rows: int
    bytes: int
    seconds: float


@dataclass(frozen=True)
class Skipped:
    """The table has this transaction already."""


@dataclass(frozen=True)
class Failed:
    """The table was not written. `may_be_in`: the commit was sent, and the log could not be read afterwards to see whether it
    arrived; only a repetition of the batch can tell."""

    error: ForebayError
    may_be_in: bool = False


Outcome = Appended | Skipped | Failed


class FilesNotWritten(ForebayError):
    """A data file of this table did not reach its folder."""


class ColumnsNotAdded(ForebayError):
    """The rows have columns that the table could not be given."""


class ChangesTooOften(ForebayError):
    """Somebody else is changing this table while it is being written."""


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
) -> dict[str, Outcome]:
    """Appends `rows` to `tables`, once for each `txn`. Pass the same `logs` with every batch, and they are not listed anew."""
    own_logs = logs is None
    logs = logs or TableLogs(spark, emit=emit)
    try:
        return _FanOut(logs, rows, table_column, txn, emit).run(tables, pool)
    finally:
        if own_logs:
            logs.close()


def last_version(spark: SparkSession, path: str, app_id: str) -> int:
    """The last version of this application's transactions in a table; -1 where there is none, or no table."""
    logs = TableLogs(spark)
    try:
        seen = logs.look(path)
        return NO_VERSION if seen is None else logs.last_version(seen, app_id)
    finally:
        logs.close()


@dataclass(frozen=True)
class _Ready:
    """A table that is to get rows: as it was seen, or None for one that is to be made."""

    table: Destination
    seen: Seen | None

    @property
    def place(self) -> Place:
        columns = self.table.partition_columns if self.seen is None else self.seen.partition_columns
        return Place(self.table.path, columns)


class _FanOut:
    """One call of `append`; what its steps share."""

    def __init__(self, logs: TableLogs, rows: DataFrame, table_column: str, txn: Txn, emit: Emit) -> None:
        self.logs, self.rows, self.table_column, self.txn, self.emit = logs, rows, table_column, txn, emit
        self.columns = rows.drop(table_column).schema

    def run(self, tables: Sequence[Destination], pool: int) -> dict[str, Outcome]:
        with ThreadPoolExecutor(pool, "tables") as threads:
            looked = dict(zip((table.name for table in tables), threads.map(self._prepare, tables), strict=True))
            ready = {name: found for name, found in looked.items() if isinstance(found, _Ready)}
            outcomes: dict[str, Outcome] = {
                name: found for name, found in looked.items() if not isinstance(found, _Ready)
            }
            if not ready:
                return outcomes
            written = self._write({name: found.place for name, found in ready.items()}, left_out=list(outcomes))
            outcomes |= {name: Failed(FilesNotWritten(error)) for name, error in written.failed.items()}
            commits = threads.map(lambda name: self._commit(ready[name], written.files[name]), written.files)
            return outcomes | dict(zip(written.files, commits, strict=True))

    # --- look ---

    def _prepare(self, table: Destination) -> _Ready | Skipped | Failed:
        """Everything that can be wrong with a table is found out here, before there are files."""
        try:
            seen = self._look(table.path)
            if isinstance(seen, Skipped):
                return seen
            return _Ready(table, self._fitting(table, seen))
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

    def _fitting(self, table: Destination, seen: Seen | None) -> Seen | None:
        """The table, once it has all columns of the rows; `Misdeclared` where that cannot be."""
        problems = list(self._problems(table, seen))
        if problems:
            raise Misdeclared([Problem(f"table {table.name}, {p.where}", p.what, p.suggestion) for p in problems])
        if seen is None or not (missing := new_columns(self.columns, seen.schema)):
            return seen
        self._add_columns(table, seen)
        self.emit(ColumnsAdded(table=table.name, columns=missing))
        return self._fitting(table, self.logs.look(table.path, again=True))

    def _problems(self, table: Destination, seen: Seen | None) -> Iterator[Problem]:
        yield from unwritable(self.columns, table.partition_columns if seen is None else seen.partition_columns)
        if seen is None:
            return
        yield from misfits(self.columns, seen.schema)
        if seen.column_mapping != "none":
            yield Problem("delta.columnMapping.mode", "is on", "forebay appends by the columns' own names only")

    def _add_columns(self, table: Destination, seen: Seen) -> None:
        """Spark does it, in a commit without rows: Kernel changes no columns without column mapping, which other readers
        cannot read."""
        from pyspark.errors import PySparkException

        no_rows = self.rows.drop(self.table_column).where("false")
        try:
            no_rows.write.format("delta").mode("append").option("mergeSchema", "true").save(seen.path)
        except PySparkException as refused:
            raise ColumnsNotAdded(f"table {table.name} at {seen.path}: {refused}") from refused

    # --- write ---

    def _write(self, places: Mapping[str, Place], left_out: Sequence[str]) -> Written:
        from pyspark.sql import functions as F

        rows = self.rows
        if left_out:
            rows = rows.where(~F.coalesce(F.col(quoted(self.table_column)).isin(list(left_out)), F.lit(False)))
        return write_files(rows, places, table_column=self.table_column, storage=storage_as(os.environ))

    # --- commit ---

    def _commit(self, ready: _Ready, files: Sequence[DataFile]) -> Outcome:
        began = time.monotonic()
        outcome: Committed | Skipped | Failed
        try:
            outcome = self._sent(ready, [file.add_action() for file in files])
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
            seconds=round(time.monotonic() - began, 3),
        )

    def _sent(self, ready: _Ready, actions: Sequence[str]) -> Committed | Skipped:
        table, seen = ready.table, ready.seen
        for _ in range(ATTEMPTS):
            if seen is None:
                columns, properties = table.partition_columns, table.properties
                outcome = self.logs.create(table.path, nullable(self.columns), columns, properties, actions, self.txn)
            else:
                outcome = self.logs.append(seen, actions, self.txn)
            if isinstance(outcome, Repeated):
                return Skipped()
            if isinstance(outcome, Committed):
                if seen is None:
                    self.emit(TableCreated(table=table.name, path=table.path))
                return outcome
            found = self._look_after_outrun(ready)
            if isinstance(found, Skipped):
                return found
            seen = found
        raise ChangesTooOften(f"table {table.name} at {table.path} was changed by others {ATTEMPTS} times meanwhile")

    def _look_after_outrun(self, ready: _Ready) -> Seen | Skipped | None:
        """The files are written; does the table as it is now still take them?"""
        seen = self._look(ready.table.path, again=True)
        if isinstance(seen, Skipped):
            return seen
        seen = self._fitting(ready.table, seen)
        if _Ready(ready.table, seen).place != ready.place:
            raise ChangesTooOften(f"table {ready.table.name} got other partition columns meanwhile")
        return seen

    def _looked_for(self, table: Destination, failure: LogFailed) -> Committed | Failed:
        """A commit whose answer was lost may have arrived all the same; to say `Failed` of it would invite a duplicate."""
        try:
            seen = self.logs.look(table.path, again=True)
            if seen is not None and self.logs.last_version(seen, self.txn.app_id) >= self.txn.version:
                return Committed(seen.version)
        except LogFailed:
            return Failed(failure, may_be_in=True)
        return Failed(failure)
