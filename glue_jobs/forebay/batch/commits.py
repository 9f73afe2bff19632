"""What all commits of a batch have in common, and those to our own tables: the quarantine, parked records, ids, the ledger.

In: rows, and how many they must be. Out: they are in the table with this batch's transaction, once. Otherwise `Halt` says why,
and nothing may be marked as done.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from forebay.batch.accounting import Fate, arriving
from forebay.batch.events import OwnRowsAppended
from forebay.batch.held import Held
from forebay.batch.reasons import OF_WHOLE_TABLES
from forebay.content.end import FileEnd
from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.events import Emit
from forebay.lake.layout import PARKED, QUARANTINE, own_table, table_path
from forebay.lake.log.commit import rows_of_transaction
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.versions import Superseded, standing
from forebay.privacy.vault import values_of
from forebay.table.commit import Txn
from forebay.table.destination import Appended, AppendResult, Destination, Failed, Skipped
from forebay.table.fan_out import append, append_from_driver
from forebay.table.kernel import TableLogs
from forebay.table.replace import Staying, replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Commits", "is_small"]

FEW_BYTES = 4 << 20
"""Of a batch whose files hold no more, the driver itself writes what is kept beside the tables: that spares a job."""


ROWS_A_TASK = 50_000
"""Of a table beside the service's. Where tasks hold so many, each writes its own, and none is sent to another task."""


def is_small(ends: Iterable[FileEnd]) -> bool:
    return sum(end.expanded_bytes for end in ends) <= FEW_BYTES


@dataclass(frozen=True, kw_only=True)
class Commits:
    """Of one batch."""

    spark: SparkSession
    service: Service
    lake: str
    generation: str
    txn: Txn
    began_at: datetime
    logs: TableLogs
    emit: Emit
    causes: dict[str, str] = field(default_factory=dict)
    """Why tables could not be written."""

    @property
    def shared(self) -> dict[str, Any]:
        """What all rows of this batch say alike, in the ledger and beside it."""
        return {"service": self.service.name, "generation": self.generation, "batch": self.txn.version}

    def done(self, tables: Iterable[str]) -> frozenset[str]:
        """Of these tables, and of what is kept beside them, those that have this batch's commit."""
        names = {*tables, QUARANTINE, PARKED}
        return frozenset(name for name in names if self.logs.has(table_path(self.lake, name), self.txn, again=True))

    @property
    def vault_waits(self) -> bool:
        """Whether there is a vault that has nothing of this batch. It has nothing of a batch without originals, either."""
        vault = self.service.privacy.vault if self.service.privacy else ""
        return bool(vault) and not self.logs.has(values_of(vault), self.txn, again=True)

    def unwritten_before(self) -> dict[str, str]:
        """Tables whose rows went to the quarantine when this very batch was tried before: they must not be written as well."""
        path = table_path(self.lake, QUARANTINE)
        if not self.logs.has(path, self.txn):
            return {}
        rows = self.spark.read.format("delta").load(path)
        mine = rows.where((rows.generation == self.generation) & (rows.batch == self.txn.version))
        whole = mine.where(mine.reason.isin(*OF_WHOLE_TABLES))
        kept = whole.select("table", "reason").distinct().collect()
        return {row.table: row.reason for row in kept}

    def write_held(
        self,
        rows: DataFrame | None,
        ends: Sequence[FileEnd],
        unwritten: dict[str, str],
        fates: Sequence[Fate],
        superseded: Sequence[Superseded],
        released: Sequence[LandedFile] = (),
    ) -> None:
        """Quarantine and parked: one commit each, if there is anything to keep, or to let go."""
        stand = standing(superseded)
        coming = arriving(fates, unwritten, stand)
        keep = Held(rows, self.spark, unwritten, {**self.shared, "at": self.began_at}, stand, self.causes)
        quarantined = sum(f.rows for f in coming if f.fate == "quarantine")
        quarantined += sum(f.rows for f in coming if f.fate == "write" and f.table in unwritten)
        files = [end for end in ends if end.outcome == "unreadable"]
        few = not (superseded or released) and is_small(ends)
        if quarantined or files or superseded or released:
            rows_held = keep.quarantined(files) if quarantined or files else None
            leaving = [s.earlier.file.file_id for s in superseded if s.earlier.row["quarantined"]]
            leaving += [file.file_id for file in released]
            self.write_own(
                "quarantine",
                rows_held.toArrow() if few and rows_held is not None else rows_held,
                quarantined + len(files),
                leaving,
            )
        parked = sum(f.rows for f in fates if f.fate == "park")
        if parked or superseded:
            rows_held = keep.parked() if parked else None
            leaving = [s.earlier.file.file_id for s in superseded if s.earlier.row["parked"]]
            self.write_own(
                "parked", rows_held.toArrow() if few and rows_held is not None else rows_held, parked, leaving
            )

    def write_own(
        self,
        name: str,
        rows: DataFrame | pa.Table | None,
        wanted: int,
        leaving: Sequence[str] = (),
        staying: Staying | None = None,
    ) -> None:
        """One of our own tables."""
        table = Destination(own_table(name), table_path(self.lake, own_table(name)), ("day",))
        self.write_beside(table, rows, wanted, leaving, staying)

    def write_beside(
        self,
        table: Destination,
        rows: DataFrame | pa.Table | None,
        wanted: int,
        leaving: Sequence[str] = (),
        staying: Staying | None = None,
    ) -> None:
        """A table that is not the service's; if it cannot be written, nothing may be marked as done. Rows in Arrow need no
        Spark job, and let no earlier ones leave."""
        from pyspark.sql import functions as F

        more: dict[str, Any] = {"txn": self.txn, "logs": self.logs, "emit": self.emit}
        result: AppendResult | None = None
        if isinstance(rows, pa.Table):
            result = append_from_driver(rows, table, expected=wanted, **more)
        elif leaving and self.logs.look(table.path) is not None:
            coming = None if rows is None else lambda seen: rows
            more = {"txn": self.txn, "logs": self.logs, "id_column": "file_id", "staying": staying}
            result = replace(self.spark, table, leaving, coming, **more)
        elif rows is not None:
            named = rows.withColumn("_table", F.lit(table.name))
            more |= {"expected": {table.name: wanted}, "gather": self.are_few(wanted)}
            result = append(self.spark, named, [table], **more)[table.name]
        if isinstance(result, Failed):
            raise Halt(f"{table.path} could not be written, so batch {self.txn.version} stays open: {result.error}")
        if isinstance(result, Skipped) and table.name in (QUARANTINE, PARKED):
            self.must_have_come(table.path, wanted)
        if isinstance(result, Appended):
            self.must_count(table.path, wanted, result)
            told: dict[str, Any] = {"rows": result.rows, "files": result.files, "bytes": result.bytes}
            told |= {"service": self.service.name, "batch": self.txn.version}
            self.emit(OwnRowsAppended(table=table.name, **told))

    def are_few(self, rows: int) -> bool:
        """So few that each task would make a small file of its own. All rows of one batch have one day."""
        return rows < ROWS_A_TASK * self.spark.sparkContext.defaultParallelism

    @staticmethod
    def must_be_there(table: str, wanted: int, rows: DataFrame) -> None:
        """Spark's own commits tell their rows only afterwards."""
        if (found := rows.count()) != wanted:
            raise Halt(f"{table}: {wanted} rows were counted, but {found} are there now; nothing of them was committed")

    def must_have_come(self, path: str, wanted: int) -> None:
        """An earlier try wrote this table. What it wrote is in the commit that carries the transaction."""
        rows = rows_of_transaction(open_objects(path), self.txn.app_id, self.txn.version)
        if rows != wanted:
            found = "no commit of it is in the log" if rows is None else f"its commit brought {rows}"
            raise Halt(
                f"{path} has batch {self.txn.version} of {self.txn.app_id} already, and {wanted} rows should have come "
                f"with it, but {found}; nothing was marked as done. Compare the table with the files of the batch"
            )

    @staticmethod
    def must_count(table: str, wanted: int, result: Appended) -> None:
        if result.rows != wanted:
            raise Halt(f"{table}: {wanted} rows belong there, but Delta's commit {result.version} counts {result.rows}")
