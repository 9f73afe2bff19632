"""One batch of rows, committed to many tables, exactly once to each.

In: data files that are staged, and the batch's transaction. Out, for each table: `Appended`, `Skipped` (it has this batch
already), or `Failed` (with the reason; the other tables are not delayed). A second call with the same transaction does the
remaining work.

A commit adds files to a table's log, without a Spark job. If a table got other columns after its files were written, their
rows are read from the files and written again: the records themselves are not needed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from forebay.errors import ForebayError
from forebay.events import Emit
from forebay.table.commit import CommitConflict, CommitRefused, Committed, CommitUnknown, LogFailed, Repeated, Txn
from forebay.table.destination import Appended, AppendResult, Destination, Failed, Skipped, TableLost
from forebay.table.events import ColumnsAdded, TableCreated, TypesWidened
from forebay.table.kernel import Seen, TableLogs
from forebay.table.ready import fit, with_wider_types
from forebay.table.schema import merged, misfits, new_columns
from forebay.table.staged import StagedTable
from forebay.table.staging import StagingFromSpark, look
from forebay.table.widening import widenings
from forebay.threads import in_threads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

ATTEMPTS = 5
"""A table that changes under us more often than this in one batch fails, and a person should ask who changes it."""


class ChangesTooOften(ForebayError):
    """Somebody else is changing this table while it is being written."""


class OtherwiseNow(ChangesTooOften):
    """The table has changed since its files were written: they must be written again."""


def commit_staged(
    spark: SparkSession,
    tables: Sequence[tuple[Destination, StagedTable]],
    *,
    txn: Txn,
    logs: TableLogs,
    emit: Emit,
    pool: int = 8,
) -> dict[str, AppendResult]:
    """Makes the files of each table a part of it, once for each `txn`, in whichever process."""
    commit = _Commit(logs, txn, emit)
    results = in_threads(lambda pair: commit.run(*pair), tables, pool)
    outcomes = {table.name: result for (table, _), result in zip(tables, results, strict=True)}
    for table, staged in tables:
        if _may_fit_now(outcomes[table.name]):
            outcomes[table.name] = written_anew(spark, table, staged, txn, logs, emit)
    return outcomes


def _may_fit_now(outcome: AppendResult) -> bool:
    """A table that was settled since its files were written."""
    return isinstance(outcome, Failed) and isinstance(outcome.error, OtherwiseNow)


def written_anew(
    spark: SparkSession, table: Destination, staged: StagedTable, txn: Txn, logs: TableLogs, emit: Emit
) -> AppendResult:
    """Rewrites the data files for the table's current columns, from their own contents."""
    from pyspark.sql import functions as F

    rows = staged.records(spark, table.path, table.rules).withColumn("_table", F.lit(table.name))
    again = StagingFromSpark(logs, rows, txn, emit, {table.name: staged.rows}).run([table], 1)[table.name]
    return _Commit(logs, txn, emit).run(table, again) if isinstance(again, StagedTable) else again


class _Commit:
    """Commits staged files to one table after the other, or to several at once."""

    def __init__(self, logs: TableLogs, txn: Txn, emit: Emit) -> None:
        self.logs, self.txn, self.emit = logs, txn, emit

    def run(self, table: Destination, staged: StagedTable) -> AppendResult:
        began = time.monotonic()
        outcome: Committed | Skipped | Failed
        try:
            seen = staged.ready.seen if staged.ready else self._look(table, staged)
        except ForebayError as problem:
            return Failed(problem)
        try:
            outcome = seen if isinstance(seen, Skipped) else self._sent(table, staged, seen)
        except LogFailed as failure:
            outcome = self._looked_for(table, failure)
        except ForebayError as problem:
            outcome = Failed(problem)
        if not isinstance(outcome, Committed):
            return outcome
        return Appended(
            version=outcome.version,
            files=len(staged.files),
            rows=staged.rows,
            bytes=staged.bytes,
            rescued=staged.rescued,
            seconds=round(time.monotonic() - began, 3),
        )

    def _sent(self, table: Destination, staged: StagedTable, seen: Seen | None) -> Committed | Skipped:
        actions = [file.add_action() for file in staged.files]
        schema = staged.schema
        for _ in range(ATTEMPTS):
            missing: tuple[str, ...] = ()
            wider: StructType | None = None
            if seen is None and table.if_lost:
                raise TableLost(table.if_lost)
            if seen is None:
                partitions, properties = table.partition_columns, table.properties
                outcome = self.logs.create(
                    table.path, schema, partitions, properties, actions, self.txn, cluster_columns=table.cluster_columns
                )
            elif self.logs.set_properties(seen, table.properties):
                outcome = CommitConflict()  # the table is another one now
            else:
                missing = new_columns(schema, seen.schema)
                wider = with_wider_types(table, seen, staged.fixed_schema)
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
            found = self._look(table, staged, again=True)
            if isinstance(found, Skipped):
                return found
            seen = found
        raise ChangesTooOften(f"table {table.name} at {table.path} was changed by other writers {ATTEMPTS} times")

    def _look(self, table: Destination, staged: StagedTable, *, again: bool = False) -> Seen | Skipped | None:
        """The files are written; does the present table take them?"""
        seen = look(self.logs, table.path, self.txn, again=again)
        if isinstance(seen, Skipped):
            return seen
        fit(table, seen, staged.fixed_schema)
        partitions = table.partition_columns if seen is None else seen.partition_columns
        if tuple(partitions) != staged.partition_columns:
            raise OtherwiseNow(f"table {table.name} got other partition columns in the meantime")
        if seen is not None:
            now = with_wider_types(table, seen, staged.fixed_schema) or seen.schema
            if problem := next(misfits(staged.schema, now), None):
                raise OtherwiseNow(f"table {table.name} got other columns in the meantime: {problem}")
        return seen

    def _looked_for(self, table: Destination, failure: LogFailed) -> Committed | Failed:
        """A commit whose answer was lost may have arrived, or may arrive later: a PUT can wait in a queue of the network.
        To call it `Failed` would invite a duplicate."""
        if isinstance(failure, CommitRefused):
            return Failed(failure)
        try:
            seen = self.logs.look(table.path, again=True)
            if seen is not None and self.logs.last_version(seen, self.txn.app_id) >= self.txn.version:
                return Committed(seen.version)
        except LogFailed:
            return Failed(failure, may_be_in=True)
        return Failed(failure, may_be_in=isinstance(failure, CommitUnknown))
