"""Retries held records: quarantined ones after a fix, parked ones once a route exists. Or drops them for good; the ledger
counts those too.

In: which of them (`Choice`), and the declarations as they are now. Out: `Retried`. Each record lands exactly once, however
often the driver is killed. Before anything happens, a *plan* is durable: the version of the table that holds the records, the
choice, and the declarations. An unfinished plan is finished first. Every commit carries the plan's number as its transaction,
under an application id of its own; a record leaves where it was held last of all.

Whole files that could not be read are not among them: those are loaded by announcing them again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from forebay.batch.accounting import Fate
from forebay.batch.dedupe import RETRY, Dedupe
from forebay.batch.events import RecordsRetried
from forebay.batch.expectations import checked
from forebay.batch.leftovers import Leftover, left_behind, leftovers_by_table
from forebay.batch.new_tables import NewTables
from forebay.batch.reading import until
from forebay.batch.reasons import TABLE_FAILED
from forebay.batch.retry_plan import PLAN, THIS_RETRY, Choice, RetryPlan
from forebay.batch.routing import routed, with_final_fates
from forebay.batch.writing import Writing
from forebay.declaration.pinned import pinned, unpinned
from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.events import Emit
from forebay.lake.layout import LEDGER, own_table, plans_of, table_path
from forebay.lake.objects import Objects, open_objects
from forebay.lake.paused import paused_tables
from forebay.ledger.entry import COLUMNS as LEDGER_COLUMNS
from forebay.ledger.ledger import NAMES, rows_with
from forebay.table.commit import Txn
from forebay.table.conflict import is_conflict
from forebay.table.destination import Appended, Destination, Failed
from forebay.table.kernel import NO_VERSION, TableLogs
from forebay.table.replace import replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Retried", "Retry"]

ATTEMPTS = 8
KEYS = ("file_id", "byte_offset")
"""What a held record is known by. Never its line: many records may stand on one."""


@dataclass(frozen=True)
class Retried:
    """What became of the chosen records; what is in none of these stays where it was."""

    chosen: int = 0
    tables: dict[str, int] = field(default_factory=dict)
    dropped: int = 0

    @property
    def moved(self) -> int:
        return sum(self.tables.values()) + self.dropped


class Retry:
    """For one service. Safe beside a running ingest job, and beside another one of itself."""

    def __init__(
        self,
        spark: SparkSession,
        service: Service,
        *,
        lake: str,
        emit: Emit,
        logs: TableLogs | None = None,
        plans: Objects | None = None,
        tables_at_once: int = 4,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.spark, self.service, self.lake, self.emit, self.clock = spark, service, lake, emit, clock
        self.logs = logs or TableLogs(spark, emit=emit)
        self.plans = plans or open_objects(plans_of(lake, service.name))
        self.tables_at_once = tables_at_once

    def concerns_any(self, choice: Choice) -> bool:
        """Whether a run would find anything to do: an earlier plan to finish, or such records."""
        if self.plans.read(PLAN) is not None:
            return True
        if self.logs.look(self._path(choice.held), again=True) is None:
            return False
        held = self.spark.read.format("delta").load(self._path(choice.held))
        return bool(self._chosen(held, choice).limit(1).count())

    def run(self, choice: Choice) -> Retried:
        """Finishes what was begun before, then does this."""
        self._finish_earlier()
        seen = self.logs.look(self._path(choice.held), again=True)
        if seen is None:
            return Retried()
        plan = RetryPlan(
            self._last_number() + 1,
            seen.version,
            self.clock().isoformat(),
            choice,
            pinned(self.service.with_paused(paused_tables(self.lake))),
            NO_VERSION if (ids := self.logs.look(self._path("ids"), again=True)) is None else ids.version,
        )
        if not self.plans.write_over(PLAN, plan.as_json(), None):
            raise Halt("another retry is running; start this one when it has ended")
        return self._carry_out(plan)

    def _finish_earlier(self) -> None:
        found = self.plans.read(PLAN)
        if found is not None:
            self._carry_out(RetryPlan.of_json(found))

    def _carry_out(self, plan: RetryPlan) -> Retried:
        service = unpinned(plan.service, THIS_RETRY)
        dedupe = self._dedupe(plan, service)
        with ExitStack() as cached:
            rows = until(cached, self._routed(plan, service))
            if dedupe.wanted and not plan.choice.give_up:
                rows = dedupe.without_duplicates(rows, [0], cached)
            tried = _Carrying(self, plan, service, rows, dedupe).run()
        self.plans.delete([PLAN])
        told = {"records": tried.chosen, "written": sum(tried.tables.values()), "dropped": tried.dropped}
        self.emit(RecordsRetried(service=service.name, held=plan.choice.held, **told))
        return tried

    def _dedupe(self, plan: RetryPlan, service: Service) -> Dedupe:
        shared = {"service": service.name, "generation": RETRY, "batch": plan.number}
        day = datetime.fromisoformat(plan.at).date()
        return Dedupe(
            spark=self.spark,
            service=service,
            path=self._path("ids"),
            logs=self.logs,
            shared=shared,
            day=day,
            as_of=plan.ids_version,
        )

    def _routed(self, plan: RetryPlan, service: Service) -> DataFrame:
        """The chosen records with the fates that they have today; `_line` and the rest as when they came."""
        from pyspark.sql import functions as F

        choice = plan.choice
        held = self.spark.read.format("delta").option("versionAsOf", plan.version).load(self._path(choice.held))
        held = self._chosen(held, choice)
        columns = {"_file_id": "file_id", "_line": "line", "value": "record", "_landed_at": "at"}
        content = held.select(
            F.lit(0).alias("piece"),
            "line",
            "byte_offset",
            *(F.col(there).alias(here) for here, there in columns.items()),
            F.lit(None).cast("string").alias("problem"),
            F.lit(None).cast("string").alias("detail"),
            *("bucket", "key", "version_id"),
            # Of those that were held by an earlier forebay nobody knows it.
            F.col("metadata") if "metadata" in held.columns else F.lit(None).cast("string").alias("metadata"),
        )
        rows = with_final_fates(checked(routed(content, service), service))
        if choice.give_up:
            return rows.withColumn("_fate", F.lit("drop"))
        if choice.held == "parked" and choice.table is not None:
            rows = rows.where(F.col("_table") == choice.table)
        return rows

    def _chosen(self, held: DataFrame, choice: Choice) -> DataFrame:
        """But for parked ones, which are chosen by the table that takes them now."""
        from pyspark.sql import functions as F

        held = held.where((F.col("service") == self.service.name) & F.col("line").isNotNull())
        if choice.held == "quarantine" and choice.table is not None:
            held = held.where(F.col("table") == choice.table)
        if choice.reason is not None:
            held = held.where(F.col("reason") == choice.reason)
        return held

    def _last_number(self) -> int:
        return self.logs.last_version_at(self._path("ledger"), app_id(self.service), again=True)

    def _path(self, name: str) -> str:
        return table_path(self.lake, own_table(name))


def app_id(service: Service) -> str:
    return f"forebay/{service.name}/{RETRY}"


class _Carrying:
    """One plan on its way."""

    def __init__(self, tries: Retry, plan: RetryPlan, service: Service, rows: DataFrame, dedupe: Dedupe) -> None:
        self.tries, self.plan, self.service, self.rows, self.dedupe = tries, plan, service, rows, dedupe
        self.spark, self.logs, self.lake = tries.spark, tries.logs, tries.lake
        self.txn = Txn(app_id(service), plan.number)

    def run(self) -> Retried:
        counted = self.rows.groupBy("_file_id", "_fate", "_table", "_declared", "_violated").count().collect()
        if not self._has(table_path(self.lake, LEDGER)):
            self._write(
                [Fate(r["_file_id"], r["_fate"], r["count"], r["_table"], r["_declared"], _names(r)) for r in counted]
            )
            in_tables = self._written({r["_table"] for r in counted if r["_fate"] == "write"})
            self._account([r for r in counted if _moves(r, in_tables)])
        # From here on what is in the ledger counts: a table that failed then may not be tried under this number again.
        in_tables = self._written({r["_table"] for r in counted if r["_fate"] == "write"})
        self._let_go(in_tables)
        tables: dict[str, int] = {}
        for r in counted:
            if r["_fate"] == "write" and _moves(r, in_tables):
                tables[r["_table"]] = tables.get(r["_table"], 0) + r["count"]
        dropped = sum(r["count"] for r in counted if r["_fate"] == "drop")
        return Retried(sum(r["count"] for r in counted), tables, dropped)

    def _write(self, fates: Sequence[Fate]) -> None:
        if self.plan.choice.give_up:
            return
        writing = Writing(
            spark=self.spark,
            service=self.service,
            lake=self.lake,
            generation=RETRY,
            txn=self.txn,
            began_at=datetime.fromisoformat(self.plan.at),
            logs=self.logs,
            new_tables=NewTables(),
            tables_at_once=self.tries.tables_at_once,
            emit=self.tries.emit,
        )
        writing.write_again(self.rows, fates, leftovers_by_table(self._leftovers({fate.file_id for fate in fates})))
        if self.dedupe.wanted:
            written = self._written(names := {f.table for f in fates if f.fate == "write" and f.table is not None})
            writing.remember(self.rows, dict.fromkeys(names - written, TABLE_FAILED), fates, self.dedupe)

    def _written(self, tables: set[str]) -> set[str]:
        return {table for table in tables if self._has(table_path(self.lake, table))}

    def _has(self, path: str) -> bool:
        return self.logs.has(path, self.txn, again=True)

    def _account(self, moved: Sequence[Any]) -> None:
        """The ledger's rows of these files, as they are from now on."""
        if not moved:
            return
        by_file: dict[str, list[Any]] = {}
        for r in moved:
            by_file.setdefault(r["_file_id"], []).append(r)
        path = table_path(self.lake, LEDGER)
        ledger = self.spark.read.format("delta").load(path)
        found = rows_with(ledger, "file_id", "string", by_file).collect()
        rows = [self._settled({**dict.fromkeys(NAMES), **row.asDict()}, by_file[row["file_id"]]) for row in found]
        if len(rows) != len(by_file):
            raise Halt(f"{len(by_file)} files have held records, but the ledger has {len(rows)} of them")
        written = {r["_table"] for r in moved if r["_fate"] == "write"}
        rows += [one.without(written) for one in self._leftovers(by_file.keys()) if one.tables.keys() & written]
        self._change_ledger(rows)

    def _leftovers(self, file_ids: Collection[str]) -> list[Leftover]:
        """Of earlier versions of these files: they leave a table together with the coming of the newer version's rows."""
        ledger = self.spark.read.format("delta").load(table_path(self.lake, LEDGER))
        return left_behind(ledger, self.service, sorted(file_ids))

    def _change_ledger(self, told: Sequence[dict[str, Any]]) -> None:
        rows = self.spark.createDataFrame([*told], LEDGER_COLUMNS)
        table = Destination("ledger", table_path(self.lake, LEDGER), ("day",))
        leaving = [row["file_id"] for row in told]
        result = replace(
            self.spark, table, leaving, lambda seen: rows, txn=self.txn, logs=self.logs, id_column="file_id"
        )
        if isinstance(result, Failed):
            raise Halt(f"the ledger could not be written; run it again, and it is finished: {result.error}")
        if isinstance(result, Appended) and result.rows != len(told):
            raise Halt(f"{len(told)} rows of the ledger change, but Delta's commit counts {result.rows}")

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

    def _let_go(self, in_tables: set[str]) -> None:
        """Those that moved leave the table where they were held; run again, there are none left."""
        from delta.tables import DeltaTable
        from pyspark.sql import functions as F

        moved = self.rows.where(
            (F.col("_fate") == "drop") | ((F.col("_fate") == "write") & F.col("_table").isin(sorted(in_tables)))
        )
        gone = moved.select(F.col("_file_id").alias("file_id"), "byte_offset")
        held = DeltaTable.forPath(self.spark, table_path(self.lake, own_table(self.plan.choice.held)))
        same = " AND ".join(f"held.{key} = gone.{key}" for key in KEYS)
        for attempt in range(ATTEMPTS):
            try:
                held.alias("held").merge(gone.alias("gone"), same).whenMatchedDelete().execute()
                return
            except Exception as refused:
                if not is_conflict(refused):
                    raise
                time.sleep(0.2 * 2**attempt)
        raise Halt("the records are where they belong, but could not leave where they were held: run it again")


def _moves(row: Any, in_tables: set[str]) -> bool:
    return row["_fate"] == "drop" or (row["_fate"] == "write" and row["_table"] in in_tables)


def _names(row: Any) -> tuple[str, ...]:
    return tuple(row["_violated"] or ())
