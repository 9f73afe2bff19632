"""The common part of all commits of a batch, and the commits to our own tables: the quarantine, parked records, ids, the
ledger.

In: rows, and their expected number. Out: they are in the table with this batch's transaction, once. Otherwise `Halt` gives the
reason, and nothing may be marked as done.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from forebay.batch.events import OwnRowsAppended
from forebay.batch.plan import Staged, delete_files
from forebay.batch.reasons import OF_WHOLE_TABLES
from forebay.counted import counted
from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.events import Emit
from forebay.lake.layout import IDS, PARKED, QUARANTINE, table_path
from forebay.lake.log.commit import rows_of_transaction
from forebay.lake.objects import open_objects
from forebay.privacy.vault import place_of
from forebay.table.commit import LogFailed, Txn
from forebay.table.data_files.data_file import DataFile
from forebay.table.destination import Appended, AppendResult, Destination, Failed, Skipped
from forebay.table.fan_out import commit_staged
from forebay.table.kernel import TableLogs
from forebay.table.replace import Staying, replace
from forebay.table.staged import StagedTable
from forebay.table.staging import Staging as StagingOfTables
from forebay.table.staging import StagingFromDriver, StagingFromSpark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_A_TASK = 50_000
"""For tables beside the service's. If tasks have this many rows each, each writes its own, and none is sent to another
task."""


@dataclass(frozen=True, kw_only=True)
class Commits:
    """The commits of one batch."""

    spark: SparkSession
    service: Service
    lake: str
    generation: str
    txn: Txn
    began_at: datetime
    logs: TableLogs
    emit: Emit
    ahead: timedelta = timedelta()
    """How much later than its clock said it counts as begun: later than earlier readings of its files."""
    causes: dict[str, str] = field(default_factory=dict)
    """Why tables could not be written."""
    added_to: set[str] = field(default_factory=set)
    """Our own tables that got a commit in this attempt. A repeated batch skips those of an earlier one."""

    @property
    def where(self) -> dict[str, Any]:
        """The values that all events of this batch share."""
        return {"service": self.service.name, "batch": self.txn.version}

    @property
    def day(self) -> date:
        """The day on which it began, by its clock."""
        return (self.began_at - self.ahead).date()

    @property
    def shared(self) -> dict[str, Any]:
        """The values that all rows of this batch share, in the ledger and elsewhere."""
        return {"service": self.service.name, "generation": self.generation, "batch": self.txn.version}

    @property
    def shared_beside(self) -> dict[str, Any]:
        """Those that its rows beside the tables share."""
        return {"day": self.day, "at": self.began_at, **self.shared}

    def own(self, name: str) -> Destination:
        return Destination(name, self.place_of(name), ("day",))

    def place_of(self, name: str) -> str:
        return place_of(name, self.lake, self.service.vault)

    def delete(self, files: Iterable[DataFile]) -> None:
        delete_files(files, self.lake, self.service.vault)

    def is_in(self, path: str) -> bool:
        """Whether a table has this batch. One whose log cannot be read fails at its commit, and alone."""
        try:
            return self.logs.has(path, self.txn, again=True)
        except LogFailed:
            return False

    def unwritten_before(self) -> dict[str, str]:
        """Tables whose rows went to the quarantine when this very batch was tried before: they must not be written as well."""
        path = table_path(self.lake, QUARANTINE)
        if not self.logs.has(path, self.txn):
            return {}
        mine = self.rows_beside(path)
        kept = mine.where(mine.reason.isin(*OF_WHOLE_TABLES)).select("table", "reason").distinct().collect()
        return {row.table: row.reason for row in kept}

    def rows_beside(self, path: str) -> DataFrame:
        """The rows that a table beside the service's has of this batch."""
        rows = self.spark.read.format("delta").load(path)
        return rows.where((rows.generation == self.generation) & (rows.batch == self.txn.version))

    def staged_ids(self, staged: Staged) -> DataFrame | None:
        """The ids that the batch has not committed yet."""
        ids = staged.beside.get(IDS)
        return None if ids is None else ids.read(self.spark, self.place_of(IDS))

    # --- rows whose files are written first, and committed once the batch's plan names them ---

    def stage_beside(
        self, table: Destination, rows: DataFrame | pa.Table, wanted: int, *, replaces: bool = False
    ) -> StagedTable | None:
        """None where the table has this batch already."""
        from pyspark.sql import functions as F

        expected = {table.name: wanted}
        staging: StagingOfTables
        if isinstance(rows, pa.Table):
            staging = StagingFromDriver(self.logs, rows, self.txn, self.emit, expected)
        else:
            named, gather = rows.withColumn("_table", F.lit(table.name)), self.are_few(wanted)
            staging = StagingFromSpark(self.logs, named, self.txn, self.emit, expected, gather=gather)
        return self.beside(table, staging, replaces=replaces)

    def beside(self, table: Destination, staging: StagingOfTables, *, replaces: bool) -> StagedTable | None:
        staged = staging.run([table], 1)[table.name]
        if isinstance(staged, Failed):
            raise self.stays_open(table, staged)
        return None if isinstance(staged, Skipped) else dataclasses.replace(staged, replaces=replaces)

    def commit_beside(
        self,
        table: Destination,
        staged: StagedTable | None,
        wanted: int,
        leaving: Sequence[str] = (),
        staying: Staying | None = None,
    ) -> None:
        """These rows replace those of the files that are `leaving`, in the same commit."""
        if leaving and self.logs.look(table.path) is not None:
            coming = None if staged is None else lambda seen: staged.read(self.spark, table.path)
            self.must_be_in(table, wanted, self.replaced_beside(table, coming, leaving, staying))
        elif staged is not None and staged.replaces:
            self.write_beside(table, staged.read(self.spark, table.path), wanted)
        elif staged is not None:
            self.must_be_in(table, wanted, self.commit_all([(table, staged)])[table.name])
        elif wanted:
            self.must_have_come(table.path, wanted)

    def commit_all(self, tables: Sequence[tuple[Destination, StagedTable]], pool: int = 1) -> dict[str, AppendResult]:
        return commit_staged(self.spark, tables, txn=self.txn, logs=self.logs, emit=self.emit, pool=pool)

    # --- rows that need no plan: their transaction is all that a repetition goes by ---

    def write_beside(
        self, table: Destination, rows: DataFrame | pa.Table, wanted: int, leaving: Sequence[str] = ()
    ) -> None:
        """A table that is not the service's; if it cannot be written, nothing may be marked as done. It exists where rows are
        `leaving` it, or says why it must."""
        if leaving:
            self.must_be_in(table, wanted, self.replaced_beside(table, lambda seen: rows, leaving, None))
        else:
            staged = self.stage_beside(table, rows, wanted)
            result = Skipped() if staged is None else self.commit_all([(table, staged)])[table.name]
            self.must_be_in(table, wanted, result)

    def replaced_beside(
        self, table: Destination, coming: Any, leaving: Sequence[str], staying: Staying | None
    ) -> AppendResult:
        return replace(
            self.spark, table, leaving, coming, txn=self.txn, logs=self.logs, id_column="file_id", staying=staying
        )

    # --- what must hold ---

    def must_be_in(self, table: Destination, wanted: int, result: AppendResult) -> None:
        if isinstance(result, Failed):
            raise self.stays_open(table, result)
        if isinstance(result, Skipped) and table.name in (QUARANTINE, PARKED):
            self.must_have_come(table.path, wanted)
        if isinstance(result, Appended):
            self.must_count(table.path, wanted, result)
            self.added_to.add(table.name)
            self.emit(
                OwnRowsAppended(
                    **self.where, table=table.name, rows=result.rows, files=result.files, bytes=result.bytes
                )
            )

    def stays_open(self, table: Destination, why: Failed) -> Halt:
        return Halt(f"{table.path} could not be written, so batch {self.txn.version} remains open: {why.error}")

    def are_few(self, rows: int) -> bool:
        """Whether the rows are so few that each task would make its own small file. All rows of one batch have one day."""
        return rows < ROWS_A_TASK * self.spark.sparkContext.defaultParallelism

    def must_have_come(self, path: str, wanted: int) -> None:
        """An earlier try wrote this table. Its rows are in the commit that carries the transaction."""
        rows = rows_of_transaction(open_objects(path), self.txn.app_id, self.txn.version)
        if rows != wanted:
            found = "its log has no commit of that batch" if rows is None else f"its commit added {rows}"
            raise Halt(
                f"{path} has batch {self.txn.version} of {self.txn.app_id} already. {counted(wanted, 'row')} should have been "
                f"added, but {found}. Nothing was marked as done. Compare the table with the files of the batch"
            )

    @staticmethod
    def must_count(table: str, wanted: int, result: Appended) -> None:
        if result.rows != wanted:
            belong = counted(wanted, "row", "belongs")
            raise Halt(f"{table}: {belong} there, but Delta's commit {result.version} has {result.rows}")
