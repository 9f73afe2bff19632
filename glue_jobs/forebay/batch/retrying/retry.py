"""Retries held records: quarantined ones after a fix, parked ones once a route exists. Or drops them for good; the ledger
counts those too.

In: the `Choice` of records, and the newest declarations. Out: `Retried`. Each record lands exactly once, however often the
driver is killed: a plan is durable before anything happens (`planning`), and an unfinished one is finished first. Every commit
carries the plan's number as its transaction (`moving`). A retry and a batch never move the same record (`attempt.turns`).

Whole files that could not be read are not included: announce them again to load them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from forebay.batch.dedupe import RETRY, Dedupe
from forebay.batch.events import RecordsRetried
from forebay.batch.leftovers import other_rows_in_force
from forebay.batch.new_tables import NewTables
from forebay.batch.one_pass.driver import OnePass
from forebay.batch.one_pass.landed import HeldFile
from forebay.batch.one_pass.outcome import IN_VAIN_AT_MOST, ReadAgain
from forebay.batch.one_pass.spec import Known
from forebay.batch.plan import Plans
from forebay.batch.retrying.chosen import Chosen, HeldRecords, given_up, held_files
from forebay.batch.retrying.moving import Moving, Retried
from forebay.batch.retrying.plan import THIS_RETRY, Choice, RetryPlan
from forebay.batch.retrying.planning import Planning, app_id
from forebay.batch.retrying.reserved import ReservedIds
from forebay.batch.writing import Writing
from forebay.content.limits import Limits
from forebay.declaration.kept.pinned import unpinned
from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.events import Emit
from forebay.lake.layout import IDS, LEDGER, PLANS, last_versions_of, plans_of, table_path
from forebay.lake.lease import LASTS_S, hold
from forebay.lake.objects import open_objects
from forebay.ledger.claim import later_than
from forebay.ledger.last_versions import KeptVersions, Versions
from forebay.table.catalog import Catalog
from forebay.table.commit import Txn
from forebay.table.kernel import NO_VERSION, TableLogs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        catalog: Catalog | None = None,
        tables_at_once: int = 4,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.spark, self.service, self.lake, self.emit = spark, service, lake, emit
        self.logs = logs or TableLogs(spark, emit=emit)
        batches = Plans(open_objects(f"{lake}/{PLANS}"), service.name)
        plans = open_objects(plans_of(lake, service.name))
        self.planning = Planning(spark, service, lake, plans=plans, batches=batches, logs=self.logs, clock=clock)
        self.last_versions = KeptVersions(open_objects(last_versions_of(lake)), service.name)
        self.catalog, self.tables_at_once = catalog, tables_at_once
        self.one_pass = OnePass(spark, lake, Limits(), self.logs)
        self.reserved = ReservedIds(lake, service.name, batches)
        self.still_ours: Callable[[], None] = lambda: None
        self.finished = Retried()
        """The results of a plan that an earlier run left, and that this run finished."""

    def concerns_any(self, choice: Choice) -> bool:
        """Whether a run would find anything to do: an earlier plan to finish, or such records."""
        if not self._is_there(LEDGER):
            return False
        if self.planning.left() is not None:
            return True
        if not self._is_there(choice.place):
            return False
        held = self.spark.read.format("delta").load(self._path(choice.place))
        return bool(self.planning.chosen(held, choice).limit(1).count())

    def run(self, choice: Choice) -> Retried:
        """Finishes what was begun before, then does this. Before the first batch has ended, nothing can be retried. A second
        retry waits: two at once with one plan could disagree about a table that fails."""
        if not self._is_there(LEDGER):
            return Retried()
        lease = hold(plans_of(self.lake, self.service.name), wait_s=WAIT_S, emit=self.emit)
        self.still_ours = lease.check
        try:
            return self._run(choice)
        finally:
            lease.let_go()

    def _run(self, choice: Choice) -> Retried:
        self.last_versions.must_not_be_older(self._versions, open_objects(self._path(IDS)))
        self._finish_earlier()
        done, after = Retried(), ""
        while self._is_there(choice.place):
            plan = self.planning.planned(choice, after)
            done += self._carry_out(plan)
            if not (after := plan.until):
                break
        return done

    def _is_there(self, name: str) -> bool:
        return self._version_of(name) != NO_VERSION

    def _versions(self) -> Versions:
        return Versions.of(self._version_of, None, has_ids=self.service.drops_duplicates)

    def _version_of(self, name: str) -> int:
        return self.logs.version_at(self._path(name), again=True)

    def _finish_earlier(self) -> None:
        plan = self.planning.left()
        if plan is not None and plan.intent and plan.choice.give_up:
            self.planning.forget(plan)  # nothing was dropped, and nobody has seen the records that came since then
        elif plan is not None:
            self.finished = self._carry_out(self.planning.planned(plan.choice, plan.after) if plan.intent else plan)

    def _carry_out(self, plan: RetryPlan) -> Retried:
        service = unpinned(plan.service, THIS_RETRY)
        tried = self._moved(plan, service)
        self.planning.forget(plan)
        counts = {"records": tried.chosen, "written": sum(tried.tables.values()), "dropped": tried.dropped}
        self.emit(RecordsRetried(service=service.name, held=plan.choice.held, **counts))
        return tried

    def _moved(self, plan: RetryPlan, service: Service) -> Retried:
        """Where a pass cannot be used, the records are read again."""
        files = {} if plan.choice.give_up else self._files_of(plan)
        writing, why = self._writing(plan, service, files), ""
        dedupe = Dedupe(writing=writing, day=writing.day, as_of=plan.ids_version)
        known: dict[str, Known] = {}
        for _ in range(IN_VAIN_AT_MOST):
            try:
                chosen = self._chosen_of(plan, files, dedupe, writing, known)
                keep = partial(self._keep_written, plan)
                return Moving(plan, chosen, dedupe, writing, self.reserved, self.still_ours, keep).run()
            except ReadAgain as found:
                why, known = str(found), {**known, **found.known}
        raise Halt(f"the records were read {IN_VAIN_AT_MOST} times, and their data files could not be used: {why}")

    def _keep_written(self, plan: RetryPlan, tables: Collection[str]) -> None:
        self.planning.keep(plan, written=tuple(sorted(tables)))

    def _ids_must_stand(self) -> int:
        """Their version. `Halt` if somebody has restored older ones since this retry began."""
        version = self._version_of(IDS)
        self.last_versions.ids_must_stand(version, open_objects(self._path(IDS)))
        return version

    def _files_of(self, plan: RetryPlan) -> dict[HeldFile, int]:
        return held_files(self.planning.held(plan))

    def _chosen_of(
        self,
        plan: RetryPlan,
        files: Mapping[HeldFile, int],
        dedupe: Dedupe,
        writing: Writing,
        known: Mapping[str, Known],
    ) -> Chosen:
        held, choice, service = self.planning.held(plan), plan.choice, writing.service
        if choice.give_up:
            return given_up(held)
        only = choice.table if choice.held == "parked" else None
        in_force = other_rows_in_force(self.spark.read.format("delta").load(self._path(LEDGER)), service)
        records = HeldRecords(self.spark, held, files, service, only, in_force)
        keep = partial(self.planning.keep, plan)
        compared = partial(
            self.reserved.compared_with, dedupe=dedupe, writing=writing, must_stand=self._ids_must_stand, keep=keep
        )
        return records.through(self.one_pass, compared, shared=writing.shared_beside, known=known)

    def _writing(self, plan: RetryPlan, service: Service, files: Iterable[HeldFile]) -> Writing:
        """A retry begins later than the readings of its files, as a batch does. Held records have that time."""
        at = datetime.fromisoformat(plan.at)
        began_at = later_than((file.event_time for file in files), at)
        return Writing(
            spark=self.spark,
            service=service,
            lake=self.lake,
            generation=RETRY,
            txn=Txn(app_id(service), plan.number),
            began_at=began_at,
            ahead=began_at - at,
            logs=self.logs,
            new_tables=NewTables(),
            tables_at_once=self.tables_at_once,
            emit=self.emit,
            catalog=self.catalog,
        )

    def _path(self, name: str) -> str:
        return table_path(self.lake, name)
