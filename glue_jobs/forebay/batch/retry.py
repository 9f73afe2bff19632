"""Retries held records: quarantined ones after a fix, parked ones once a route exists. Or drops them for good; the ledger
counts those too.

In: which of them (`Choice`), and the declarations as they are now. Out: `Retried`. Each record lands exactly once, however
often the driver is killed. Before anything happens, a *plan* is durable: the version of the table that holds the records, the
choice, and the declarations. An unfinished plan is finished first. Every commit carries the plan's number as its transaction,
under an application id of its own; a record leaves where it was held last of all.

A batch that replaces or replays a file moves the file's held records, too. Never do both: each makes its plan durable before it
looks for the other's. A retry leaves out the files of every batch that has a plan. A batch that finds a plan of a retry
leaves such files for later (`batch.turns`). Nor does a retry begin while a rollback is half done, or the other way round.

Whole files that could not be read are not among them: those are loaded by announcing them again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from forebay.batch.accounting import Fate
from forebay.batch.dedupe import RETRY, Dedupe
from forebay.batch.events import RecordsRetried
from forebay.batch.expectations import checked
from forebay.batch.ledger_change import Change, change_counts
from forebay.batch.leftovers import Leftover, brought_back, left_behind, leftovers_by_table
from forebay.batch.new_tables import NewTables
from forebay.batch.plan import Plans
from forebay.batch.reading import until
from forebay.batch.reasons import TABLE_FAILED
from forebay.batch.retry_plan import PLAN, THIS_RETRY, Choice, RetryPlan
from forebay.batch.routing import routed, with_final_fates
from forebay.batch.treated import treated_again, without_erased
from forebay.batch.writing import Writing
from forebay.declaration.pinned import pinned, unpinned
from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.events import Emit
from forebay.lake.layout import LEDGER, PLANS, own_table, plans_of, table_path
from forebay.lake.objects import Objects, open_objects
from forebay.lake.paused import paused_tables
from forebay.lake.rollback_plan import must_not_be_half_rolled_back
from forebay.landed_file import LandedFile
from forebay.ledger.ledger import NAMES, rows_with
from forebay.table.commit import Txn
from forebay.table.conflict import is_conflict
from forebay.table.kernel import NO_VERSION, TableLogs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Retried", "Retry"]

ATTEMPTS = 8
ANOTHER = "another retry is running; start this one when it has ended"
SUPERSEDED = "superseded"
"""The fate of a record that stays held, because an earlier version of its file is in force again in its table."""
KEYS = ("file_id", "byte_offset")
"""What a held record is known by. Never its line: many records may stand on one."""


@dataclass(frozen=True)
class Retried:
    """What became of the chosen records; what is in none of these stays where it was."""

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
        self.batches = Plans(open_objects(f"{lake}/{PLANS}"), service.name)
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
        if self.logs.look(self._path(choice.held), again=True) is None:
            return Retried()
        return self._carry_out(self._planned(choice))

    def _finish_earlier(self) -> None:
        if (plan := self._left()) is not None:
            self._carry_out(self._planned(plan.choice) if plan.intent else plan)

    def _left(self) -> RetryPlan | None:
        found = self.plans.read(PLAN)
        return None if found is None else RetryPlan.of_json(found)

    def _planned(self, choice: Choice) -> RetryPlan:
        """First the intent, then a look for batches, then the plan: see above."""
        service = without_erased(self.service.with_paused(paused_tables(self.lake)), self.lake)
        number, at = self._last_number() + 1, self.clock().isoformat()
        intent = RetryPlan(number, NO_VERSION, at, choice, pinned(service), intent=True)
        earlier = self.plans.read_tagged(PLAN)
        self._write_over(intent, earlier and earlier[1])
        tagged = self.plans.read_tagged(PLAN)
        try:
            must_not_be_half_rolled_back(self.lake)
        except Halt:
            self.plans.delete([PLAN])  # or the rollback would wait for this retry
            raise
        in_batches = [file for plan in self.batches.left() for file in plan.files]
        held = self.logs.look(self._path(choice.held), again=True)
        ids = self.logs.look(self._path("ids"), again=True)
        assert held is not None
        plan = replace(
            intent, version=held.version, ids_version=NO_VERSION if ids is None else ids.version, intent=False
        )
        plan = replace(plan, without=tuple(self._held_of(plan, in_batches)))
        if tagged is None or tagged[0] != intent.as_json():
            raise Halt(ANOTHER)
        self._write_over(plan, tagged[1])
        return plan

    def _write_over(self, plan: RetryPlan, tag: str | None) -> None:
        if not self.plans.write_over(PLAN, plan.as_json(), tag):
            raise Halt(ANOTHER)

    def _held_of(self, plan: RetryPlan, files: Collection[LandedFile]) -> list[str]:
        """The ids of files with chosen records whose keys are those of these files."""
        if not files:
            return []
        from pyspark.sql import functions as F

        keys = sorted({(file.bucket, file.key) for file in files})
        wanted = F.broadcast(self.spark.createDataFrame(keys, "bucket string, key string"))
        found = self._held(plan).join(wanted, ["bucket", "key"], "left_semi")
        return sorted(row.file_id for row in found.select("file_id").distinct().collect())

    def _held(self, plan: RetryPlan) -> DataFrame:
        held = self.spark.read.format("delta").option("versionAsOf", plan.version).load(self._path(plan.choice.held))
        chosen = self._chosen(held, plan.choice)
        return chosen.where(~chosen["file_id"].isin(list(plan.without))) if plan.without else chosen

    def _carry_out(self, plan: RetryPlan) -> Retried:
        service = unpinned(plan.service, THIS_RETRY)
        dedupe = self._dedupe(plan, service)
        with ExitStack() as cached:
            rows = until(cached, self._routed(plan, service))
            if dedupe.wanted and not plan.choice.give_up:
                rows = dedupe.without_duplicates(rows, [0], cached)
            tried = _Carrying(self, plan, service, rows, dedupe).run()
        if (left := self._left()) is not None and (left.number, left.at) == (plan.number, plan.at):
            self.plans.delete([PLAN])  # and no other one: somebody else may have finished this one, too
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
        held = self._held(plan)
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
        rows = with_final_fates(checked(routed(treated_again(content, service), service), service))
        if choice.give_up:
            return rows.withColumn("_fate", F.lit("drop"))
        if (earlier := brought_back(self.spark.read.format("delta").load(self._path("ledger")), service)) is not None:
            marked = rows.join(F.broadcast(earlier.withColumn("_back", F.lit(True))), ["_file_id", "_table"], "left")
            stays = F.col("_back").isNotNull() & (F.col("_fate") == "write")
            rows = marked.withColumn("_fate", F.when(stays, SUPERSEDED).otherwise(F.col("_fate"))).drop("_back")
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
        writing.write_again(self.rows, fates, leftovers_by_table(self.leftovers({fate.file_id for fate in fates})))
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
        written = {r["_table"] for r in moved if r["_fate"] == "write"}

        def changes() -> list[Change]:
            found = self.ledger_rows(by_file.keys())
            if len(found) != len(by_file):
                raise Halt(f"{len(by_file)} files have held records, but the ledger has {len(found)} of them")
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
