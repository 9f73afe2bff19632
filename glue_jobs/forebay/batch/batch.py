"""The heart: a batch of file names becomes rows, each exactly once in the table that it belongs to. The ledger is written
last.

foreachBatch calls `Batch.process`. Spark may call it again with the same files. Every commit carries the transaction (service
and checkpoint generation, batch id), so a finished commit is recognised and a missing one is made. One bad record, file or
table never stops the others; `Halt` stops everything, before anything is marked as done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING

from forebay.batch.accounting import Fate, Standing
from forebay.batch.declarations import Declarations, with_begun_tables
from forebay.batch.dedupe import Dedupe
from forebay.batch.ending import Ending, without_failed_replays
from forebay.batch.erased import without_erased
from forebay.batch.events import BatchReadTwice, BatchRepeated
from forebay.batch.late_commits import LateCommits
from forebay.batch.ledger_change import change_times
from forebay.batch.names import files_of
from forebay.batch.new_tables import NewTables
from forebay.batch.one_pass.outcome import Pass, ReadAgain
from forebay.batch.one_pass.staging import OnePass
from forebay.batch.one_pass.told import KeptOut, Known
from forebay.batch.one_pass.without_plan import Brought, must_bring_the_same
from forebay.batch.plan import Plan, Plans
from forebay.batch.recent_ids import RecentIds
from forebay.batch.reporting import Stages, reports_of
from forebay.batch.retrying.retry import app_id
from forebay.batch.seen import IN_VAIN_AT_MOST, Seen
from forebay.batch.staged import Staged
from forebay.batch.staging import Changes
from forebay.batch.turns import Turns
from forebay.batch.writing import Writing
from forebay.content.end import FileEnd
from forebay.content.limits import Limits
from forebay.declaration.kept.pinned import pinned, unpinned
from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.events import Emit
from forebay.lake.layout import IDS, PLANS, application, new_tables_of, plans_of, skips_of, table_path
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.entry import COLUMNS as LEDGER_COLUMNS
from forebay.ledger.last_versions import Versions
from forebay.ledger.ledger import Ledger
from forebay.ledger.skips import Skips
from forebay.ledger.versions import Sorted, standing
from forebay.table.catalog import Catalog
from forebay.table.commit import Txn
from forebay.table.data_files.in_arrow import arrow_rows
from forebay.table.destination import Skipped
from forebay.table.kernel import NO_VERSION, TableLogs
from forebay.table.staging import look

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Batch"]

Arriving = Callable[[Service, Collection[LandedFile], Collection[LandedFile]], None]
"""Gets the files of a batch, and those of them that it reads, before the batch writes anything."""


@dataclass(frozen=True)
class Begun:
    """A batch up to its plan."""

    plan: Plan
    split: Sorted
    changes: Changes
    dedupe: Dedupe
    landed: Collection[str]


class Batch:
    """The steps of one batch after the other, for one service and one checkpoint."""

    had_ledger = False
    """Whether the lake was ever seen with one."""
    is_newest = False
    """Whether that one was compared with what the last batch left."""

    def __init__(
        self,
        spark: SparkSession,
        service: Service,
        *,
        lake: str,
        generation: Callable[[], str],
        ledger: Ledger,
        emit: Emit,
        limits: Limits | None = None,
        tables_at_once: int = 4,
        still_ours: Callable[[], None] = lambda: None,
        declarations: Declarations | None = None,
        catalog: Catalog | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        late_commit_wait_s: float = 0,
        sleep: Callable[[float], None] = time.sleep,
        arriving: Arriving = lambda service, files, to_read: None,
        may_have_begun: Callable[[int], bool] = lambda batch: True,
    ) -> None:
        self.arriving, self.may_have_begun = arriving, may_have_begun
        self.spark, self.service, self.lake, self.ledger, self.emit = spark, service, lake, ledger, emit
        self.generation_of, self.limits, self.clock = generation, limits or Limits(), clock
        self.tables_at_once, self.still_ours = tables_at_once, still_ours
        self.logs = TableLogs(spark, emit=emit)
        self.one_pass = OnePass(spark, lake, self.limits, self.logs)
        self.new_tables = NewTables(open_objects(new_tables_of(lake, service.name)))
        self.declarations, self.catalog = declarations, catalog
        self.recent_ids = RecentIds(open_objects(table_path(lake, IDS)))
        self.skips = Skips(open_objects(skips_of(lake)))
        self.plans = Plans(open_objects(f"{lake}/{PLANS}"), service.name)
        self.late = LateCommits(
            service=service.name, since=clock(), wait_s=late_commit_wait_s, emit=emit, clock=clock, sleep=sleep
        )
        self.turns = Turns(open_objects(plans_of(lake, service.name)))

    @cached_property
    def generation(self) -> str:
        """Asked for with the first batch: before that, a new stream has no name."""
        return self.generation_of()

    def process(self, names: DataFrame, batch_id: int) -> None:
        """Done when it returns; done already when the ledger has the batch."""
        files = self.ledger.own(files_of(names))
        txn = self.txn(self.generation, batch_id)
        plan = self.plans.of(self.generation, batch_id)
        if self.in_ledger(txn, plan):
            self.must_know(files, txn)
            self.forget(plan)
            self.emit(BatchRepeated(service=self.service.name, batch=batch_id))
            return
        if plan is not None and plan.settled:
            self.go_on(plan, txn)
            return
        if self.declarations is not None:
            self.service = self.declarations.in_force()
        service = without_erased(self.service, self.lake)
        self.service = with_begun_tables(service, self.lake, txn, self.logs, at_once=self.tables_at_once)
        self.withdraw(plan)
        self.begin(files, txn, Stages())

    def finish_earlier(self) -> None:
        """Finishes batches that an earlier driver left unfinished, of whatever generation, under their own transaction. A retry
        may be waiting for any of them. Spark replays the one of its checkpoint, which is done then. Run again, it finds nothing
        to do."""
        for plan in self.plans.left():
            txn = self.txn(plan.generation, plan.batch)
            if self.in_ledger(txn, plan):
                self.forget(plan)
            elif plan.settled:
                before = self.service
                self.go_on(plan, txn)
                self.service = before
            else:
                self.withdraw(plan)

    def txn(self, generation: str, batch: int) -> Txn:
        return Txn(application(self.service.name, generation), batch)

    def must_know(self, files: Sequence[LandedFile], txn: Txn) -> None:
        """Done is a claim about these very files."""
        if unknown := self.ledger.unknown(files):
            raise Halt(
                f"the ledger has batch {txn.version} of {txn.app_id}, but lacks {len(unknown)} of its files, such as "
                f"{unknown[0].uri}: this stream numbers its batches from 0 again. Start with a new --checkpoint. Loaded "
                "files are not loaded again, and no message was deleted"
            )

    def in_ledger(self, txn: Txn, plan: Plan | None) -> bool:
        """Whether the batch has ended. `Halt` if the ledger was lost. A look at a ledger that was seen before costs no request:
        the batch's last commit notices one that is lost later."""
        self.had_ledger |= plan is not None and plan.had_ledger
        seen = look(self.logs, self.ledger.path, txn)
        if seen is None and self.had_ledger:
            raise Halt(self.ledger.lost)
        if seen is not None and not self.is_newest:
            self.ledger.last_versions.must_not_be_older(self.versions)
            self.is_newest = True
        self.had_ledger = seen is not None
        return isinstance(seen, Skipped)

    def versions(self) -> Versions:
        """Those of the ledger, and of the ids."""

        def version_of(name: str) -> int:
            return self.logs.version_at(table_path(self.lake, name))

        return Versions.of(version_of, self.ledger.rows, has_ids=self.service.drops_duplicates)

    def close(self) -> None:
        """Waits for the tables' checkpoints that are under way."""
        self.logs.close()

    def writing(self, txn: Txn, plan: Plan | None = None) -> Writing:
        return Writing(
            spark=self.spark,
            service=self.service,
            lake=self.lake,
            generation=plan.generation if plan else self.generation,
            txn=txn,
            began_at=plan.began_at if plan else self.clock(),
            logs=self.logs,
            new_tables=self.new_tables,
            tables_at_once=self.tables_at_once,
            emit=self.emit,
            catalog=self.catalog,
            late=self.late if plan else None,
        )

    def begin(self, files: Sequence[LandedFile], txn: Txn, stages: Stages) -> None:
        """From the files to a plan that binds every later attempt, and on to the end. Before that plan nothing happened."""
        writing = self.writing(txn)
        with stages.stage("claim"):
            claim = self.claimed(files, self.skips.among(files))
            to_read = claim.to_read()
            self.tell_of_arrival(files, to_read)
        begun = self.begun(files, claim, to_read, writing, stages)
        plan, split = begun.plan, begun.split
        if not plan.settled and self.must_begin_anew(files, split, begun.landed, plan.tries_until):
            self.withdraw(plan)
            self.begin(files, txn, stages)
            return
        plan = plan if plan.settled else self.plans.settle(plan)
        self.carry_out(plan, split, begun.changes, begun.dedupe, writing, stages)

    def begun(
        self, files: Sequence[LandedFile], claim: Claim, to_read: Sorted, writing: Writing, stages: Stages
    ) -> Begun:
        """The files are read again until no file and no table has to be left out of what was read."""
        seen = Seen(to_read, self.turns.taken(to_read))
        while True:
            made = None
            try:
                with stages.stage("read"):
                    made = self.read(seen.to_read, writing, seen.kept_out or {}, seen.standing, known=seen.known)
                    if made.read_twice:
                        self.tell_read_twice(writing, made.read_twice)
                    made = replace(made, ends=[*made.ends, *seen.ends])
                    split = claim.decided(made.landed)
                    seen.must_agree_with(made, split)
                with stages.stage("write"):
                    dedupe = self.dedupe(writing, split, self.last_try())
                    made = self.one_pass.without_duplicates(made, dedupe)
                    return self.staged(files, to_read, split, dedupe, writing, made, seen.kept_out)
            except ReadAgain as found:
                if made is not None:
                    made.undo()  # no plan names its files, which is not so certain of other failures
                self.tell_read_twice(writing, str(found))
                seen.learn(found)

    def tell_read_twice(self, writing: Writing, why: str) -> None:
        self.emit(BatchReadTwice(service=self.service.name, batch=writing.txn.version, why=why))

    def read(
        self,
        files: Sequence[LandedFile],
        writing: Writing,
        kept_out: Mapping[str, KeptOut],
        standing: Standing,
        *,
        known: Mapping[str, Known] | None = None,
        only_unwritten: bool = False,
    ) -> Pass:
        shared = {**writing.shared, "at": writing.began_at}
        return self.one_pass.of(
            files,
            self.service,
            batch=writing.txn.version,
            shared=shared,
            unwritten=kept_out,
            standing=standing,
            known=known,
            only_unwritten=only_unwritten,
        )

    def staged(
        self,
        files: Sequence[LandedFile],
        to_read: Sorted,
        split: Sorted,
        dedupe: Dedupe,
        writing: Writing,
        made: Pass,
        kept_out: Mapping[str, KeptOut] | None,
    ) -> Begun:
        changes = Changes(split.superseded_by(made.landed), split.released)
        fresh = {file.file_id for file in split.fresh}
        ends = [end for end in made.ends if end.file.file_id in fresh]
        fates = [fate for fate in made.fates if fate.file_id in made.landed]
        ending = without_failed_replays(ends, split)
        staged = writing.stage(made, ending, fates, changes, kept_out)
        brought = Brought(ending, fates, staged.unwritten, to_read.superseded, changes.superseded)
        if self.may_have_begun(writing.txn.version) or brought.tables - staged.tables.keys():
            must_bring_the_same(brought, writing, staged, self.plans.address(writing.generation, writing.txn.version))
        plan = self.plan_of(files, split, writing, ends, fates, made.landed, dedupe, staged)
        return Begun(plan, split, changes, dedupe, made.landed)

    def tell_of_arrival(self, files: Sequence[LandedFile], split: Sorted) -> None:
        """A file that is read, or an earlier version that leaves for it, may change a period that was complete."""
        to_read = [file for file in split.fresh if not file.is_deletion]
        self.arriving(self.service, files, [*to_read, *(one.earlier.file for one in split.superseded)])

    def go_on(self, plan: Plan, txn: Txn) -> None:
        """From a plan to the end. Only where a table fails at its commit are files read again, for the quarantine."""
        stages = Stages()
        self.service = unpinned(plan.service, f"batch {plan.batch}")
        writing = self.writing(txn, plan)
        with stages.stage("claim"):
            claim = self.claimed(plan.files, plan.skipped, plan.cleared)
            split = plan.sorted_as_begun(claim)
            _must_be_unknown(plan, claim.to_read())
        writing.must_have_files(plan.staged, self.plans.address(plan.generation, plan.batch))
        changes = Changes(split.superseded_by({end.file.file_id for end in plan.ends if end.lands}), split.released)
        dedupe = self.dedupe(writing, split, plan.tries_until)
        self.carry_out(plan, split, changes, dedupe, writing, stages)

    def carry_out(
        self,
        plan: Plan,
        split: Sorted,
        changes: Changes,
        dedupe: Dedupe,
        writing: Writing,
        stages: Stages,
    ) -> None:
        """All commits of a plan, the ledger's last."""
        self.still_ours()
        with stages.stage("write"):
            ends = without_failed_replays(plan.ends, split)
            refused = sum(end.outcome == "unreadable" for end in ends)
            again = partial(self.kept_out_of, plan, split, dedupe, writing)
            unwritten = writing.commit(plan, refused, changes, dedupe, again)
        self.finish(Ending(plan, split, changes.superseded, unwritten, self.clock()), writing, stages)

    def finish(self, ending: Ending, writing: Writing, stages: Stages) -> None:
        """Commits the ledger, then reports the batch."""
        self.still_ours()
        with stages.stage("ledger"):
            if put_again := ending.split.put_again:
                change_times(self.spark, self.ledger.path, [seen.row for seen in put_again])
            self.commit(writing, ending)
            self.ledger.withheld.add(ending.waiting)
        self.forget(ending.plan if ending.plan.ends else None)
        for event in reports_of(self.service.name, ending, stages, self.clock()):
            self.emit(event)

    def forget(self, plan: Plan | None) -> None:
        """It is carried out. Rows that replaced others were written by Spark once more."""
        if plan is not None:
            self.writing(self.txn(plan.generation, plan.batch), plan).delete(one for one in plan.staged if one.replaces)
            self.plans.forget(plan.generation, plan.batch)

    def withdraw(self, plan: Plan | None) -> None:
        """One that was never settled: nothing was committed by it. It goes before its data files do, for a driver that was
        paused may settle a plan that is there."""
        if plan is not None:
            self.plans.forget(plan.generation, plan.batch)
            self.writing(self.txn(plan.generation, plan.batch), plan).delete(plan.staged)

    def claimed(
        self, files: Sequence[LandedFile], skipped: Collection[str], cleared: Collection[str] | None = None
    ) -> Claim:
        return self.ledger.claim(files, self.service, skipped, cleared)

    def must_begin_anew(
        self, files: Sequence[LandedFile], split: Sorted, landed: Collection[str], tries_until: int | None
    ) -> bool:
        """Whether a retry is running or has ids that the batch does not know, or people were erased since the batch began, now
        that the plan is durable. An erasure writes its list before it looks for plans, so one of the two sees the other. A
        retry writes its ids before it looks for plans."""
        before, self.service = self.service, without_erased(self.service, self.lake)
        if self.service != before or self.last_try() != tries_until:
            return True
        return self.turns.lost(split, landed, lambda: self.claimed(files, self.skips.among(files)))

    def kept_out_of(
        self, plan: Plan, split: Sorted, dedupe: Dedupe, writing: Writing, tables: Mapping[str, KeptOut]
    ) -> Pass:
        """Only the rows of tables that failed at their commit, as records, to be kept in the quarantine. Their files are read
        once more, maybe by another driver than the one that began."""
        dedupe = replace(dedupe, planned=partial(writing.staged_ids, plan.staged))
        for _ in range(IN_VAIN_AT_MOST):
            try:
                made = self.read_unwritten(plan, split, dedupe, writing, tables)
            except ReadAgain as found:
                self.tell_read_twice(writing, str(found))
                continue
            if plan.reads_like(made.ends, made.fates, tables):
                return made
            made.undo()
            break
        raise Halt(
            f"a table of batch {plan.batch} cannot be written, and its records cannot be quarantined, because their "
            "files now have other contents. The rows are safe in data files that the batch's plan names, and nothing was "
            "marked as done. Fix the table that the event TableFailed names, then start again"
        )

    def read_unwritten(
        self, plan: Plan, split: Sorted, dedupe: Dedupe, writing: Writing, tables: Mapping[str, KeptOut]
    ) -> Pass:
        """Forgotten files and deletions land, as they did before, so their ids do not count."""
        unread = {end.file.file_id for end in plan.without_bytes}
        files = [file for file in plan.landing if file.file_id not in unread]
        made = self.read(files, writing, tables, standing(split.superseded), only_unwritten=True)
        return self.one_pass.without_duplicates(replace(made, ends=[*made.ends, *plan.without_bytes]), dedupe)

    def plan_of(
        self,
        files: Sequence[LandedFile],
        split: Sorted,
        writing: Writing,
        ends: Sequence[FileEnd],
        fates: Sequence[Fate],
        landed: Collection[str],
        dedupe: Dedupe,
        staged: Staged,
    ) -> Plan:
        """The plan to go by, and its data files. It is durable before anything is committed."""
        plan = Plan(
            generation=writing.generation,
            batch=writing.txn.version,
            began_at=writing.began_at,
            service=pinned(self.service),
            files=tuple(files),
            ends=tuple(replace(end, lines_before={}) for end in ends),
            fates=tuple(fates),
            tries_until=dedupe.tries_until,
            skipped=split.skipped,
            left_out=split.left_out,
            had_ledger=self.had_ledger,
            staged=staged,
            settled=not (ends and (self.turns.watched(split, landed) or self.service.subject or dedupe.wanted)),
        )
        if plan.ends:
            self.plans.pin(plan)
        return plan

    def dedupe(self, writing: Writing, split: Sorted, tries_until: int | None) -> Dedupe:
        """The batch's day is that of its newest file, so that a replay has the same."""
        written = [file.event_time for file in split.fresh if file.event_time is not None]
        return Dedupe(
            spark=self.spark,
            service=self.service,
            path=table_path(self.lake, IDS),
            logs=self.logs,
            shared=writing.shared,
            recent=self.recent_ids,
            day=max(written, default=writing.began_at).date(),
            leaving=[(one.earlier.file.file_id, one.by.file_id) for one in split.superseded],
            tries_until=tries_until,
        )

    def last_try(self) -> int:
        """The number of the last try that left ids."""
        if not self.service.drops_duplicates:
            return NO_VERSION
        return self.logs.last_version_at(table_path(self.lake, IDS), app_id(self.service), again=True)

    def commit(self, writing: Writing, ending: Ending) -> None:
        """The new results of files that are tried again replace their earlier rows."""
        new, changed, leaving = ending.new, ending.changed, ending.leaving
        if new or changed:
            at = self.clock()
            when = {"claimed_at": writing.began_at, "committed_at": at, "service_version": self.service.version}
            shared = {**writing.shared, **when}
            rows: DataFrame | pa.Table
            if leaving:
                rows = self.ledger.frame(new, changed, **shared)
            else:
                rows = arrow_rows((entry.row(**shared) for entry in new), LEDGER_COLUMNS)
            table = replace(writing.own("ledger"), if_lost=self.ledger.lost if self.had_ledger else "")
            writing.write_beside(table, rows, len(new) + len(changed), leaving)
            self.had_ledger = True
            self.ledger.remember(new, at, more=len(new) + len(changed) - len(leaving))
            self.ledger.last_versions.keep(self.versions())


def _must_be_unknown(plan: Plan, split: Sorted) -> None:
    """The files of the plan, to the ledger, which is committed last."""
    if not {end.file.file_id for end in plan.ends} <= split.new:
        raise Halt(
            f"batch {plan.batch} of generation {plan.generation} began with other files than those that are new to the "
            "ledger now: does another job write to this lake? Nothing was marked as done"
        )
