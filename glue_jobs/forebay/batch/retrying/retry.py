"""Retries held records: quarantined ones after a fix, parked ones once a route exists. Or drops them for good; the ledger
counts those too.

In: the `Choice` of records, and the newest declarations. Out: `Retried`. Each record lands exactly once, however often the
driver is killed. Before anything happens, a *plan* is durable: the version of the table that holds the records, the choice,
and the declarations. An unfinished plan is finished first. Every commit carries the plan's number as its transaction, under
its own application id; the last step removes a record from where it was held.

A batch that replaces or replays a file moves the file's held records, too. The two never overlap: each makes its plan durable
before it looks for the other's. A retry leaves out the files of every batch that has a plan. A batch that finds a plan of a
retry leaves such files for later (`attempt.turns`). Nor does a retry begin while a rollback is unfinished, or vice versa. An
erasure writes its list before it looks for plans, so either the retry goes by that list or the erasure waits for it.

Whole files that could not be read are not included: announce them again to load them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from forebay.batch.dedupe import RETRY, Dedupe
from forebay.batch.erased import without_erased
from forebay.batch.events import RecordsRetried
from forebay.batch.leftovers import brought_back
from forebay.batch.new_tables import NewTables
from forebay.batch.one_pass.outcome import IN_VAIN_AT_MOST, ReadAgain
from forebay.batch.one_pass.staging import OnePass
from forebay.batch.one_pass.told import Known
from forebay.batch.plan import Plans
from forebay.batch.retrying.brought_back import BroughtBack, brought_back_of
from forebay.batch.retrying.chosen import Chosen, HeldRecords, given_up
from forebay.batch.retrying.moving import Moving, Retried
from forebay.batch.retrying.plan import PLAN, THIS_RETRY, Choice, RetryPlan
from forebay.batch.retrying.reserved import ReservedIds
from forebay.batch.writing import Writing
from forebay.content.limits import Limits
from forebay.counted import counted
from forebay.declaration.kept.pinned import pinned, unpinned
from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.events import Emit
from forebay.lake.layout import PLANS, application, last_versions_of, own_table, plans_of, table_path
from forebay.lake.lease import LASTS_S, hold
from forebay.lake.log.snapshot import read_snapshot
from forebay.lake.objects import Objects, open_objects
from forebay.lake.paused import paused_tables
from forebay.lake.rollback_plan import must_not_be_half_rolled_back
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Key
from forebay.ledger.entry import HELD
from forebay.ledger.last_versions import KeptVersions, Versions
from forebay.table.commit import Txn
from forebay.table.kernel import NO_VERSION, TableLogs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Retried", "Retry"]

FILES_AT_ONCE, RECORDS_AT_ONCE = 50_000, 5_000_000
"""The limits of one plan. The tasks know all files, and the driver gets the position of each record."""
ANOTHER = "another retry is running; start this one when it has ended"
WAIT_S = 1.5 * LASTS_S
"""The lease of a retry that died runs out in this time."""


class Retry:
    """The retries of one service. They are safe beside a running ingest job."""

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
        self.last_versions = KeptVersions(open_objects(last_versions_of(lake)), service.name)
        self.tables_at_once = tables_at_once
        self.one_pass = OnePass(spark, lake, Limits(), self.logs)
        self.reserved = ReservedIds(spark, lake, service.name, self.batches)
        self.still_ours: Callable[[], None] = lambda: None

    def concerns_any(self, choice: Choice) -> bool:
        """Whether a run would find anything to do: an earlier plan to finish, or such records."""
        if not self._is_there("ledger"):
            return False
        if self.plans.read(PLAN) is not None:
            return True
        if not self._is_there(choice.held):
            return False
        held = self.spark.read.format("delta").load(self._path(choice.held))
        return bool(self._chosen(held, choice).limit(1).count())

    def run(self, choice: Choice) -> Retried:
        """Finishes what was begun before, then does this. Before the first batch has ended, nothing can be retried. A second
        retry waits: two at once with one plan could disagree about a table that fails."""
        if not self._is_there("ledger"):
            return Retried()
        lease = hold(plans_of(self.lake, self.service.name), wait_s=WAIT_S)
        self.still_ours = lease.check
        try:
            return self._run(choice)
        finally:
            lease.let_go()

    def _run(self, choice: Choice) -> Retried:
        self.last_versions.must_not_be_older(self._versions)
        self._finish_earlier()
        done, after = Retried(), ""
        while self._is_there(choice.held):
            plan = self._planned(choice, after)
            done += self._carry_out(plan)
            if not (after := plan.until):
                break
        return done

    def _is_there(self, name: str) -> bool:
        return self.logs.version_at(self._path(name), again=True) != NO_VERSION

    def _versions(self) -> Versions:
        def version_of(name: str) -> int:
            return self.logs.version_at(table_path(self.lake, name), again=True)

        return Versions.of(version_of, None, has_ids=self.service.drops_duplicates)

    def _finish_earlier(self) -> None:
        if (plan := self._left()) is not None:
            self._carry_out(self._planned(plan.choice, plan.after) if plan.intent else plan)

    def _left(self) -> RetryPlan | None:
        found = self.plans.read(PLAN)
        return None if found is None else RetryPlan.of_json(found)

    def _planned(self, choice: Choice, after: str) -> RetryPlan:
        """First the intent, then a look for batches and for erased people, then the plan: see above."""
        number, at = self._last_number() + 1, self.clock().isoformat()
        intent = RetryPlan(number, NO_VERSION, at, choice, pinned(self.service), intent=True, after=after)
        earlier = self.plans.read_tagged(PLAN)
        self._write_over(intent, earlier and earlier[1])
        tagged = self.plans.read_tagged(PLAN)
        try:
            must_not_be_half_rolled_back(self.lake)
        except Halt:
            self.plans.delete([PLAN])  # or the rollback would wait for this retry
            raise
        in_batches = self._in_batches()
        held = self.logs.look(self._path(choice.held), again=True)
        assert held is not None
        service = without_erased(self.service.with_paused(paused_tables(self.lake)), self.lake)
        plan = replace(intent, version=held.version, service=pinned(service), intent=False)
        plan = replace(plan, without=tuple(self._held_of(plan, in_batches)))
        self._must_be_counted(plan, in_batches)
        plan = replace(plan, until=self._until(plan))
        if tagged is None or tagged[0] != intent.as_json():
            raise Halt(ANOTHER)
        self._write_over(plan, tagged[1])
        return plan

    def _must_be_counted(self, plan: RetryPlan, in_batches: Iterable[LandedFile]) -> None:
        """Records that have left come back with an older version of the table that held them, and would land again."""
        if (found := self._brought_back(plan, partial(self._changing, in_batches))) is not None:
            self.plans.delete([PLAN])
            raise Halt(
                f"{own_table(plan.choice.held)} has {counted(found.rows, 'record')} of {found.key}, and the ledger counts "
                f"{found.known:,}. "
                "Somebody restored an older version of it. Nothing was changed. Restore the newest version, and start again. "
                "See docs/disasters.md, An older ledger"
            )

    def _brought_back(self, plan: RetryPlan, changing: Callable[[], Collection[Key]]) -> BroughtBack | None:
        held, ledger = (open_objects(self._path(name)) for name in (plan.choice.held, "ledger"))
        return brought_back_of(held, ledger, HELD[own_table(plan.choice.held)], self.service.name, changing)

    def _changing(self, before: Iterable[LandedFile]) -> set[Key]:
        """The keys of the files of batches that have not ended. A batch that was open `before`, and has ended meanwhile, may
        have removed records that were still read."""
        return {(file.bucket, file.key) for file in [*before, *self._in_batches()]}

    def _in_batches(self) -> list[LandedFile]:
        return [file for plan in self.batches.left() for file in plan.files]

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

    def _until(self, plan: RetryPlan) -> str:
        """The last file of this plan; empty where all files are few enough. Each plan has one more."""
        snapshot = read_snapshot(open_objects(self._path(plan.choice.held)), up_to=plan.version)
        if sum(file.rows or 0 for file in snapshot.files) <= FILES_AT_ONCE:
            return ""
        counts = self._held(plan).groupBy("file_id").count().orderBy("file_id").toArrow()
        return last_of(counts["file_id"].to_pylist(), counts["count"].to_pylist())

    def _held(self, plan: RetryPlan) -> DataFrame:
        held = self.spark.read.format("delta").option("versionAsOf", plan.version).load(self._path(plan.choice.held))
        chosen = self._chosen(held, plan.choice)
        if plan.without:
            chosen = chosen.where(~chosen["file_id"].isin(list(plan.without)))
        if plan.after:
            chosen = chosen.where(chosen["file_id"] > plan.after)
        return chosen.where(chosen["file_id"] <= plan.until) if plan.until else chosen

    def _carry_out(self, plan: RetryPlan) -> Retried:
        service = unpinned(plan.service, THIS_RETRY)
        tried = self._moved(plan, service)
        if (left := self._left()) is not None and left.is_of(plan):
            self.plans.delete([PLAN])  # and no other one: somebody else may have finished this one, too
        told = {"records": tried.chosen, "written": sum(tried.tables.values()), "dropped": tried.dropped}
        self.emit(RecordsRetried(service=service.name, held=plan.choice.held, **told))
        return tried

    def _moved(self, plan: RetryPlan, service: Service) -> Retried:
        """A pass that cannot be used is deleted, and the records are read again."""
        dedupe, writing, why = self._dedupe(plan, service), self._writing(plan, service), ""
        known: dict[str, Known] = {}
        for _ in range(IN_VAIN_AT_MOST):
            chosen = None
            try:
                chosen = self._chosen_of(plan, service, dedupe, writing, known)
                moving = Moving(
                    self.lake,
                    plan,
                    service,
                    chosen,
                    dedupe,
                    writing=writing,
                    still_ours=self.still_ours,
                    keep=partial(self._keep_written, plan),
                    reserved=self.reserved,
                )
                return moving.run()
            except ReadAgain as found:
                why, known = str(found), {**known, **found.known}
                if chosen is not None and chosen.made is not None:
                    chosen.made.undo()
        raise Halt(f"the records were read {IN_VAIN_AT_MOST} times, and their data files could not be used: {why}")

    def _keep_written(self, plan: RetryPlan, tables: Collection[str]) -> None:
        self._keep(plan, written=tuple(sorted(tables)))

    def _keep(self, plan: RetryPlan, **more: Any) -> None:
        tagged = self.plans.read_tagged(PLAN)
        if tagged is None or not (there := RetryPlan.of_json(tagged[0])).is_of(plan):
            raise Halt(ANOTHER)
        kept = replace(there, **more)
        if tagged[0] != kept.as_json():
            self._write_over(kept, tagged[1])

    def _chosen_of(
        self, plan: RetryPlan, service: Service, dedupe: Dedupe, writing: Writing, known: Mapping[str, Known]
    ) -> Chosen:
        held, choice = self._held(plan), plan.choice
        if choice.give_up:
            return given_up(held)
        only = choice.table if choice.held == "parked" else None
        back = brought_back(self.spark.read.format("delta").load(self._path("ledger")), service)
        shared = {**writing.shared, "at": writing.began_at}
        records = HeldRecords(self.spark, held, service, only, back)
        keep = partial(self._keep, plan)
        compared = partial(self.reserved.compared_with, dedupe=dedupe, writing=writing, keep=keep)
        return records.through(self.one_pass, compared, batch=plan.number, shared=shared, known=known)

    def _writing(self, plan: RetryPlan, service: Service) -> Writing:
        return Writing(
            spark=self.spark,
            service=service,
            lake=self.lake,
            generation=RETRY,
            txn=Txn(app_id(service), plan.number),
            began_at=datetime.fromisoformat(plan.at),
            logs=self.logs,
            new_tables=NewTables(),
            tables_at_once=self.tables_at_once,
            emit=self.emit,
        )

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
        """A retry that moved no record is not in the ledger, but it may have had ids."""
        of = app_id(self.service)
        return max(self.logs.last_version_at(self._path(name), of, again=True) for name in ("ledger", "ids"))

    def _path(self, name: str) -> str:
        return table_path(self.lake, own_table(name))


def last_of(file_ids: Sequence[str], records: Sequence[int]) -> str:
    """The last of these files that one plan takes; empty where it takes all of them. A file is not divided."""
    total = 0
    for number, (count, before) in enumerate(zip(records, ["", *file_ids], strict=False)):
        total += count
        if number and (number == FILES_AT_ONCE or total > RECORDS_AT_ONCE):
            return before
    return ""


def app_id(service: Service) -> str:
    return application(service.name, RETRY)
