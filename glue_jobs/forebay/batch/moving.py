"""Held records on their way: into tables, the ledger, and out of where they were held.

In: the plan of a retry, and its records with the fates that they have today. Out: `Retried`. Each step is a commit with the
plan's number, so what is done is not done again, however often the driver is killed. A record leaves where it was held last of
all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forebay.aws.retrying import attempts
from forebay.batch.accounting import Fate
from forebay.batch.dedupe import Dedupe
from forebay.batch.ledger_change import Change, change_counts
from forebay.batch.leftovers import Leftover, left_behind, leftovers_by_table
from forebay.batch.reasons import TABLE_FAILED
from forebay.batch.retry_plan import RetryPlan
from forebay.batch.writing import Writing
from forebay.counted import counted
from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.lake.layout import LEDGER, own_table, table_path
from forebay.ledger.ledger import NAMES, rows_with
from forebay.table.commit import is_conflict

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SUPERSEDED", "Moving", "Retried"]

SUPERSEDED = "superseded"
"""The fate of a record that stays held, because an earlier version of its file is in force again in its table."""
KEYS = ("file_id", "byte_offset")
"""The identity of a held record. Never its line: many records may be on one."""


@dataclass(frozen=True)
class Retried:
    """The results of the chosen records; a record in none of these stays where it was."""

    chosen: int = 0
    tables: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    waiting: int = 0
    """Files that a batch is about to replace or to replay. Their records were not chosen."""
    superseded: int = 0
    """Records for tables to which a rollback brought an earlier version of their file back. A replay of the file loads them."""

    @property
    def moved(self) -> int:
        return sum(self.tables.values()) + self.dropped


class Moving:
    """One plan on its way."""

    def __init__(
        self, lake: str, plan: RetryPlan, service: Service, rows: DataFrame, dedupe: Dedupe, *, writing: Writing
    ) -> None:
        self.lake, self.plan, self.service, self.rows, self.dedupe = lake, plan, service, rows, dedupe
        self.writing, self.spark, self.logs, self.txn = writing, writing.spark, writing.logs, writing.txn

    def run(self) -> Retried:
        counted = self.counted()
        wanted = {row["_table"] for row in counted if row["_fate"] == "write"}
        if not self._has(table_path(self.lake, LEDGER)):
            self._write(
                [Fate(r["_file_id"], r["_fate"], r["count"], r["_table"], r["_declared"], _names(r)) for r in counted]
            )
            in_tables = self._written(wanted)
            self._account([r for r in counted if _moves(r, in_tables)])
        # From here on what is in the ledger counts: a table that failed then may not be tried under this number again.
        in_tables = self._written(wanted)
        self.let_go(in_tables)
        tables: dict[str, int] = {}
        for r in counted:
            if r["_fate"] == "write" and _moves(r, in_tables):
                tables[r["_table"]] = tables.get(r["_table"], 0) + r["count"]
        dropped = sum(r["count"] for r in counted if r["_fate"] == "drop")
        superseded = sum(r["count"] for r in counted if r["_fate"] == SUPERSEDED)
        return Retried(sum(r["count"] for r in counted), tables, dropped, len(self.plan.without), superseded)

    def counted(self) -> Sequence[Any]:
        return self.rows.groupBy("_file_id", "_fate", "_table", "_declared", "_violated").count().collect()

    def _write(self, fates: Sequence[Fate]) -> None:
        if self.plan.choice.give_up:
            return
        self.writing.write_again(self.rows, fates, leftovers_by_table(self.leftovers({fate.file_id for fate in fates})))
        if self.dedupe.wanted:
            written = self._written(names := {f.table for f in fates if f.fate == "write" and f.table is not None})
            unwritten = dict.fromkeys(names - written, TABLE_FAILED)
            ids = self.writing.ids(self.rows, unwritten, self.dedupe)
            self.writing.remember(ids, unwritten, fates, self.dedupe)

    def _written(self, tables: set[str]) -> set[str]:
        return {table for table in tables if self._has(table_path(self.lake, table))}

    def _has(self, path: str) -> bool:
        return self.logs.has(path, self.txn, again=True)

    def _account(self, moved: Sequence[Any]) -> None:
        """The ledger's rows of these files, after the move."""
        if not moved:
            return
        by_file: dict[str, list[Any]] = {}
        for r in moved:
            by_file.setdefault(r["_file_id"], []).append(r)
        written = {r["_table"] for r in moved if r["_fate"] == "write"}

        def changes() -> list[Change]:
            found = self.ledger_rows(by_file.keys())
            if len(found) != len(by_file):
                raise Halt(
                    f"{counted(len(by_file), 'file', 'has')} held records, but the ledger has {len(found)} of them"
                )
            left = [one for one in self.leftovers(by_file.keys()) if one.tables.keys() & written]
            settled = [(row, self._settled(row, by_file[row["file_id"]])) for row in found]
            return settled + [(one.row, one.without(written)) for one in left]

        self.change_ledger(changes)

    def ledger_rows(self, file_ids: Collection[str]) -> list[dict[str, Any]]:
        ledger = self.spark.read.format("delta").load(table_path(self.lake, LEDGER))
        found = rows_with(ledger, "file_id", "string", file_ids).collect()
        return [{**dict.fromkeys(NAMES), **row.asDict()} for row in found]

    def change_ledger(self, changes: Callable[[], list[Change]]) -> None:
        change_counts(self.spark, table_path(self.lake, LEDGER), changes, txn=self.txn, logs=self.logs)

    def leftovers(self, file_ids: Collection[str]) -> list[Leftover]:
        """Of earlier versions of these files: they leave a table together with the coming of the newer version's rows."""
        ledger = self.spark.read.format("delta").load(table_path(self.lake, LEDGER))
        return left_behind(ledger, self.service, sorted(file_ids))

    def _settled(self, row: dict[str, Any], moved: Sequence[Any]) -> dict[str, Any]:
        tables = dict(row["tables"] or {})
        for r in moved:
            if r["_fate"] == "write":
                tables[r["_table"]] = tables.get(r["_table"], 0) + r["count"]
        count = sum(r["count"] for r in moved)
        dropped = sum(r["count"] for r in moved if r["_fate"] == "drop")
        held = "quarantined" if self.plan.choice.held == "quarantine" else "parked"
        if row[held] < count:
            raise Halt(f"{row['key']}: {count} records leave, but the ledger says that {row[held]} are {held}")
        made = {**row, held: row[held] - count, "dropped": row["dropped"] + dropped, "tables": tables}
        return {**made, "written": sum(tables.values())}

    def let_go(self, in_tables: set[str]) -> None:
        """Those that moved leave the table where they were held; run again, there are none left."""
        from delta.tables import DeltaTable
        from pyspark.sql import functions as F

        moved = self.rows.where(
            (F.col("_fate") == "drop") | ((F.col("_fate") == "write") & F.col("_table").isin(sorted(in_tables)))
        )
        gone = moved.select(F.col("_file_id").alias("file_id"), "byte_offset")
        held = DeltaTable.forPath(self.spark, table_path(self.lake, own_table(self.plan.choice.held)))
        same = " AND ".join(f"held.{key} = gone.{key}" for key in KEYS)
        for _ in attempts():
            try:
                held.alias("held").merge(gone.alias("gone"), same).whenMatchedDelete().execute()
                return
            except Exception as refused:
                if not is_conflict(refused):
                    raise
        raise Halt("the records are where they belong, but could not leave where they were held: run it again")


def _moves(row: Any, in_tables: set[str]) -> bool:
    return row["_fate"] == "drop" or (row["_fate"] == "write" and row["_table"] in in_tables)


def _names(row: Any) -> tuple[str, ...]:
    return tuple(row["_violated"] or ())
