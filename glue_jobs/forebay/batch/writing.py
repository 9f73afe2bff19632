"""The rows of a batch on their way into tables: one job for the files of all tables of a declaration, one commit a table.

In: rows with fates, and their counts. Out: which tables were not written, and why; their rows are in the quarantine then.
Delta's counts must be ours, or everything halts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from forebay.batch.accounting import Fate
from forebay.batch.events import NewTablesRefused, RowsAppended, TableFailed
from forebay.batch.new_tables import NewTables
from forebay.batch.reading import landing_rows
from forebay.batch.routing import OWN_COLUMNS, column_of
from forebay.batch.set_aside import SetAside
from forebay.content.end import FileEnd
from forebay.errors import Halt
from forebay.events import Emit
from forebay.service import Service, Table
from forebay.table.fan_out import Appended, Destination, Failed, Outcome, Txn, append
from forebay.table.kernel import TableLogs

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["Writing", "has", "table_path"]


def table_path(lake: str, table: str) -> str:
    return f"{lake}/{table}"


def has(logs: TableLogs, path: str, txn: Txn) -> bool:
    """Whether the table at `path` has this transaction, or a later one of this checkpoint, already."""
    seen = logs.look(path)
    return seen is not None and logs.last_version(seen, txn.app_id) >= txn.version


@dataclass(frozen=True, kw_only=True)
class Writing:
    """The writing of one batch; run again, it does what is left to do."""

    spark: SparkSession
    service: Service
    lake: str
    generation: str
    txn: Txn
    began_at: datetime
    logs: TableLogs
    new_tables: NewTables
    tables_at_once: int
    emit: Emit

    @property
    def shared(self) -> dict[str, Any]:
        """What all rows of this batch say alike, in the ledger and beside it."""
        return {"service": self.service.name, "generation": self.generation, "batch": self.txn.version}

    def write(self, rows: DataFrame | None, ends: Sequence[FileEnd], fates: Sequence[Fate]) -> dict[str, str]:
        """Tables first, then what is set aside, which takes in the rows of tables that were not written. Returns those,
        with the reason of each."""
        if rows is None:
            return {}
        landing = landing_rows(rows, ends)
        lands = {piece for end in ends if end.lands for piece in end.lines_before}
        fates = [fate for fate in fates if fate.piece in lands]
        names = {fate.table for fate in fates if fate.table is not None}
        unwritten = self.unwritten_before() if names else {}
        unwritten |= dict.fromkeys(self.too_new(names - unwritten.keys()), "too-many-new-tables")
        for declared, tables in self.by_declaration(fates).items():
            wanted = {table: rows for table, rows in tables.items() if table not in unwritten}
            failed = self.write_tables(landing, self.service.tables[declared], wanted)
            unwritten |= dict.fromkeys(failed, "table-failed")
        self.set_aside(landing, ends, unwritten, fates)
        return unwritten

    def too_new(self, names: set[str]) -> frozenset[str]:
        """Tables that do not exist, and may not come into being today."""
        new = [name for name in names if self.logs.look(table_path(self.lake, name)) is None]
        refused = self.new_tables.refuse(new, self.began_at.date())
        if refused:
            such_as = ", ".join(sorted(refused)[:5])
            where: dict[str, Any] = {"service": self.service.name, "batch": self.txn.version}
            self.emit(NewTablesRefused(**where, tables=len(refused), such_as=such_as))
        return refused

    @staticmethod
    def by_declaration(fates: Sequence[Fate]) -> dict[int, dict[str, int]]:
        """Rows per table, grouped by declaration: the tables of one share their columns, so one job writes them all. Where two
        declarations made the same name, the first one's columns hold: a table takes one commit a batch."""
        rows: dict[str, int] = {}
        first: dict[str, int] = {}
        for fate in fates:
            if fate.table is not None and fate.declared is not None:
                rows[fate.table] = rows.get(fate.table, 0) + fate.rows
                first[fate.table] = min(fate.declared, first.get(fate.table, fate.declared))
        grouped: dict[int, dict[str, int]] = {}
        for table, declared in sorted(first.items()):
            grouped.setdefault(declared, {})[table] = rows[table]
        return grouped

    def write_tables(self, rows: DataFrame, declared: Table, wanted: dict[str, int]) -> frozenset[str]:
        if not wanted:
            return frozenset()
        from pyspark.sql import functions as F

        own = {
            "_batch": F.lit(self.txn.version).cast("long"),
            "_ingested_at": F.lit(self.began_at),
            "_record": F.rtrim("value"),
        }
        columns: list[Column] = [column_of(c) for c in declared.columns]
        columns += [own.get(name, F.col(name)).alias(name) for name in OWN_COLUMNS]
        chosen = rows.where((F.col("_fate") == "write") & F.col("_table").isin(sorted(wanted)))
        results = append(
            self.spark,
            chosen.select("_table", *columns),
            [Destination(name, table_path(self.lake, name)) for name in sorted(wanted)],
            txn=self.txn,
            pool=self.tables_at_once,
            logs=self.logs,
            emit=self.emit,
        )
        return frozenset(name for name, result in results.items() if self.failed(name, wanted[name], result))

    def failed(self, table: str, wanted: int, result: Outcome) -> bool:
        where: dict[str, Any] = {"service": self.service.name, "table": table, "batch": self.txn.version}
        if isinstance(result, Failed):
            if result.may_be_in:
                raise Halt(
                    f"{table}: nobody can say whether its commit arrived, so the batch is repeated: {result.error}"
                )
            self.emit(TableFailed(**where, rows=wanted, error=str(result.error)))
            return True
        if isinstance(result, Appended):
            if result.rows != wanted:
                raise Halt(
                    f"{table}: {wanted} rows belong there, but Delta's commit {result.version} counts {result.rows}"
                )
            self.emit(RowsAppended(**where, rows=result.rows, version=result.version))
        return False

    def unwritten_before(self) -> dict[str, str]:
        """Tables whose rows went to the quarantine when this very batch was tried before: they must not be written as well."""
        path = f"{self.lake}/_forebay/quarantine"
        if not has(self.logs, path, self.txn):
            return {}
        rows = self.spark.read.format("delta").load(path)
        mine = rows.where((rows.generation == self.generation) & (rows.batch == self.txn.version))
        kept = mine.where("table is not null").select("table", "reason").distinct().collect()
        return {row.table: row.reason for row in kept}

    def set_aside(
        self, rows: DataFrame, ends: Sequence[FileEnd], unwritten: dict[str, str], fates: Sequence[Fate]
    ) -> None:
        """Quarantine and parked: one commit each, if there is anything to keep."""
        keep = SetAside(rows, unwritten, {**self.shared, "at": self.began_at})
        quarantined = sum(f.rows for f in fates if f.fate == "quarantine" or f.table in unwritten)
        files = [end for end in ends if end.outcome in ("unreadable", "unavailable")]
        if quarantined or files:
            self.append_own("quarantine", keep.quarantined(files), quarantined + len(files))
        parked = sum(f.rows for f in fates if f.fate == "park")
        if parked:
            self.append_own("parked", keep.parked(), parked)

    def append_own(self, name: str, rows: DataFrame, wanted: int) -> None:
        """One of our own tables; if it cannot be written, nothing may be marked as done."""
        from pyspark.sql import functions as F

        path = f"{self.lake}/_forebay/{name}"
        result = append(
            self.spark,
            rows.withColumn("_table", F.lit(name)),
            [Destination(name, path, ("day",))],
            txn=self.txn,
            logs=self.logs,
        )[name]
        if isinstance(result, Failed):
            raise Halt(f"{path} could not be written, so batch {self.txn.version} stays open: {result.error}")
        if isinstance(result, Appended) and result.rows != wanted:
            raise Halt(f"{path}: {wanted} rows belong there, but Delta's commit {result.version} counts {result.rows}")
