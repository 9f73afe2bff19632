"""The heart: a batch of file names becomes rows, each exactly once in the table it belongs to; the ledger says so last.

`Batch.process` is what foreachBatch calls. Spark may call it again with the same files. Every commit carries the transaction
(service and checkpoint generation, batch id), so a finished commit is recognised and a missing one is made. One bad record,
file or table never stops the others; `Halt` stops everything, before anything is marked as done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from forebay.batch.declarations import Declarations
from forebay.batch.dedupe import Dedupe, landing
from forebay.batch.ending import Ending, without_failed_replays
from forebay.batch.events import BatchRepeated, RecordsLost
from forebay.batch.late_commits import LateCommits
from forebay.batch.names import files_of
from forebay.batch.new_tables import NewTables
from forebay.batch.plan import Plan, Plans
from forebay.batch.reading import Read, fates_of, read_contents
from forebay.batch.recent_ids import RecentIds
from forebay.batch.reporting import Stages, reports_of
from forebay.batch.resume import Resumed, Turned, as_planned, resumed
from forebay.batch.retry import app_id
from forebay.batch.treated import without_erased
from forebay.batch.turns import Turns, waiting_for_turn
from forebay.batch.writing import Writing
from forebay.content.end import forgotten_end
from forebay.content.limits import Limits
from forebay.content.source import register
from forebay.declaration.pinned import pinned, unpinned
from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.events import Emit
from forebay.lake.layout import IDS, PLANS, new_tables_of, plans_of, skips_of, table_path
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.entry import COLUMNS as LEDGER_COLUMNS
from forebay.ledger.ledger import Ledger
from forebay.ledger.skips import Skips
from forebay.ledger.versions import Sorted
from forebay.table.catalog import Catalog
from forebay.table.commit import Txn
from forebay.table.in_arrow import arrow_rows
from forebay.table.kernel import NO_VERSION, TableLogs

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Batch"]


class Batch:
    """The steps of one batch after the other, for one service and one checkpoint."""

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
    ) -> None:
        self.spark, self.service, self.lake, self.ledger, self.emit = spark, service, lake, ledger, emit
        self.generation_of, self.limits, self.clock = generation, limits or Limits(), clock
        self.tables_at_once, self.still_ours = tables_at_once, still_ours
        self.logs = TableLogs(spark, emit=emit)
        self.new_tables = NewTables(open_objects(new_tables_of(lake, service.name)))
        self.declarations, self.catalog = declarations, catalog
        self.recent_ids = RecentIds(open_objects(table_path(lake, IDS)))
        self.skips = Skips(open_objects(skips_of(lake)))
        self.plans = Plans(open_objects(f"{lake}/{PLANS}"), service.name)
        self.late = LateCommits(
            service=service.name, since=clock(), wait_s=late_commit_wait_s, emit=emit, clock=clock, sleep=sleep
        )
        self.turns = Turns(open_objects(plans_of(lake, service.name)))
        register(spark)

    @cached_property
    def generation(self) -> str:
        """Asked for with the first batch: before that, a new stream has no name."""
        return self.generation_of()

    def process(self, names: DataFrame, batch_id: int) -> None:
        """Done when it returns; done already when the ledger has the batch."""
        files = self.ledger.own(files_of(names))
        txn = self.txn(self.generation, batch_id)
        if self.logs.has(self.ledger.path, txn):
            self.must_know(files, txn)
            self.plans.forget(self.generation, batch_id)
            self.emit(BatchRepeated(service=self.service.name, batch=batch_id))
            return
        plan = self.plans.of(self.generation, batch_id)
        if plan is not None:
            files = list(plan.files)
            self.service = unpinned(plan.service, f"batch {plan.batch}")
        elif self.declarations is not None:
            self.service = self.declarations.in_force()
        if plan is None:
            self.service = without_erased(self.service, self.lake)
        self.steps(files, self.writing(txn, plan), plan, Stages())

    def finish_earlier(self, current: str | None) -> None:
        """Finishes batches that an earlier generation left between a table and the ledger, under their own transaction. Those
        of the `current` one are for Spark to replay. Run again, it finds nothing to do."""
        for plan in self.plans.left():
            txn = self.txn(plan.generation, plan.batch)
            if self.logs.has(self.ledger.path, txn):
                self.plans.forget(plan.generation, plan.batch)
            elif plan.generation != current:
                self.finish_plan(plan, txn)

    def finish_plan(self, plan: Plan, txn: Txn) -> None:
        """A plan without effect is none; its files come again."""
        before = self.service
        self.service = unpinned(plan.service, f"batch {plan.batch}")
        writing = self.writing(txn, plan)
        claim = self.claimed(plan.files, plan.skipped).to_read()
        if self.done(writing, plan, claim) or self.came_late(writing, plan, claim, "it is given up"):
            self.steps(plan.files, writing, plan, Stages())
        else:
            self.plans.forget(plan.generation, plan.batch)
        self.service = before

    def txn(self, generation: str, batch: int) -> Txn:
        return Txn(f"forebay/{self.service.name}/{generation}", batch)

    def must_know(self, files: Sequence[LandedFile], txn: Txn) -> None:
        """Done is a claim about these very files."""
        if unknown := self.ledger.unknown(files):
            raise Halt(
                f"the ledger has batch {txn.version} of {txn.app_id}, but not {len(unknown)} of its files, such as "
                f"{unknown[0].uri}: this stream's batches are counted anew. Start with a new --checkpoint; what is loaded is "
                "not loaded again, and no message was deleted"
            )

    def close(self) -> None:
        """Waits for the tables' checkpoints that are under way."""
        self.logs.close()

    def writing(self, txn: Txn, plan: Plan | None) -> Writing:
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

    def steps(self, files: Sequence[LandedFile], writing: Writing, plan: Plan | None, stages: Stages) -> None:
        """A plan without effect binds nobody: the batch begins anew, and may read its files otherwise."""
        with stages.stage("claim"):
            claim, done = self.claim(files, writing, plan)
        with ExitStack() as cached:
            with stages.stage("read"):
                again = plan if done else None
                read = self.read_all_but_forgotten(claim.to_read(), again, cached)
                if again is None:
                    read = waiting_for_turn(read, self.turns.taken(claim.to_read()))
                split = as_planned(again, claim) if again else claim.decided(read.landed)
                before = _still_landing(again, read, done, split) if again else None
                dedupe = self.dedupe(writing, split, again, before)
                read = self.decided(read, split, dedupe, cached)
                if again is None and plan is not None and self.must_resume(writing, plan, claim, read):
                    self.steps(files, writing, plan, stages)
                    return
                going = self.planned(files, split, writing, plan, read, done, dedupe)
            if again is None and self.must_begin_anew(files, split, writing, read):
                self.steps(files, replace(writing, service=self.service), going.plan, stages)
                return
            self.still_ours()
            with stages.stage("write"):
                superseded = split.superseded_by(going.landed)
                ends = without_failed_replays(going.plan.ends, split)
                rows = read.landing(going.usable)
                dedupe = replace(dedupe, unread=going.landed - going.usable)
                vaulted = read.vaulted(going.usable)
                unwritten = writing.write(rows, ends, going.fates, superseded, split.released, dedupe, vaulted)
            self.finish(Ending(going.plan, split, superseded, unwritten, self.clock()), writing, stages)

    def finish(self, ending: Ending, writing: Writing, stages: Stages) -> None:
        """The ledger, then what is told of the batch."""
        self.still_ours()
        with stages.stage("ledger"):
            self.commit(writing, ending)
            self.ledger.withheld.add(ending.waiting)
        if ending.plan.ends:
            self.plans.forget(ending.plan.generation, ending.plan.batch)
        for event in reports_of(self.service.name, ending, stages, self.clock()):
            self.emit(event)

    def claim(self, files: Sequence[LandedFile], writing: Writing, plan: Plan | None) -> tuple[Claim, frozenset[str]]:
        """Which files to load, and what an earlier attempt wrote. If it wrote anything, its plan says what is skipped."""
        if plan is not None:
            claim = self.claimed(files, plan.skipped)
            if done := self.done(writing, plan, claim.to_read()):
                return claim, done
        return self.claimed(files, self.skips.among(files)), frozenset()

    def claimed(self, files: Sequence[LandedFile], skipped: Collection[str]) -> Claim:
        return self.ledger.claim(files, self.service, skipped)

    def done(self, writing: Writing, plan: Plan, split: Sorted) -> frozenset[str]:
        """What an earlier attempt at this batch wrote."""
        leaving = {table for earlier in split.superseded for table in earlier.tables}
        done = writing.done(plan.tables | leaving)
        if done and not {end.file.file_id for end in plan.ends} <= split.new:
            raise Halt(
                f"batch {plan.batch} of generation {plan.generation} was started with other files than the ledger calls new "
                "now: does another job write this lake? Nothing was marked as done"
            )
        return done

    def must_resume(self, writing: Writing, plan: Plan, claim: Claim, read: Read) -> bool:
        """Before another driver's plan gives way to one of our own: whether a commit of his arrived."""
        if plan.reads_like(read.ends, read.fates):
            return False
        return self.came_late(writing, plan, claim.to_read(), "its files read differently now")

    def must_begin_anew(self, files: Sequence[LandedFile], split: Sorted, writing: Writing, read: Read) -> bool:
        """Now that the plan is durable: whether a retry is at work, or persons were erased since the batch began. Who erases
        writes the list before he looks for plans, so one of the two sees the other."""
        before, self.service = self.service, without_erased(self.service, self.lake)
        if self.service != before:
            return True
        return self.turns.lost(split, read.landed, lambda: self.claim(files, writing, None)[0])

    def came_late(self, writing: Writing, plan: Plan, split: Sorted, why: str) -> bool:
        if writing.late is None:
            return False
        writing.late.wait_out(plan.batch, why)
        return bool(self.done(writing, plan, split))

    def read_all_but_forgotten(self, split: Sorted, again: Plan | None, cached: ExitStack) -> Read:
        """A batch that goes on forgets what it began to forget, whatever was said of a file since then."""
        if again is not None:
            files, gone = again.landing, {end.file.file_id: end for end in again.forgotten}
        else:
            files, marked = split.fresh, split.to_forget
            hashes = {one: marked[one].earlier.row.get("content_hash") or "" for one in marked}
            gone = {f.file_id: forgotten_end(f, hashes[f.file_id]) for f in files if f.file_id in hashes}
        read = self.read([file for file in files if file.file_id not in gone], cached)
        return replace(read, ends=[*read.ends, *gone.values()])

    def read(self, files: Sequence[LandedFile], cached: ExitStack) -> Read:
        return read_contents(self.spark, self.service, self.limits, files, cached)

    def decided(self, read: Read, split: Sorted, dedupe: Dedupe, cached: ExitStack) -> Read:
        """Without the files that were left out once they were read, and without records that came before."""
        read = read.only({file.file_id for file in split.fresh})
        if read.rows is None or not dedupe.wanted:
            return read
        rows = dedupe.without_duplicates(read.rows, landing(read.ends), cached, read.landed)
        return Read(rows, read.ends, fates_of(rows))

    def planned(
        self,
        files: Sequence[LandedFile],
        split: Sorted,
        writing: Writing,
        earlier: Plan | None,
        read: Read,
        done: frozenset[str],
        dedupe: Dedupe,
    ) -> Resumed:
        """The plan to go by, durable before anything is written."""
        if earlier is not None and done:
            going = resumed(earlier, read.ends, read.fates, done, split.superseded, vault_waits=writing.vault_waits)
            if going.plan != earlier:
                self.plans.change(going.plan)
                self.tell_lost(going.lost, earlier.batch)
            return going
        landed = read.landed
        plan = Plan(
            generation=writing.generation,
            batch=writing.txn.version,
            began_at=writing.began_at,
            service=pinned(self.service),
            files=tuple(files),
            ends=tuple(replace(end, lines_before={}) for end in read.ends),
            fates=tuple(fate for fate in read.fates if fate.file_id in landed),
            tries_until=dedupe.tries_until,
            skipped=split.skipped,
            left_out=split.left_out,
        )
        if earlier is not None and plan.ends:
            self.plans.change(plan)
        elif earlier is not None:
            self.plans.forget(plan.generation, plan.batch)
        elif plan.ends:
            self.plans.pin(plan)
        return Resumed(plan, frozenset(landed))

    def tell_lost(self, lost: Mapping[LandedFile, int], batch: int) -> None:
        for file, records in lost.items():
            self.emit(RecordsLost(service=self.service.name, batch=batch, uri=file.uri, records=records))

    def dedupe(
        self, writing: Writing, split: Sorted, again: Plan | None, landed: frozenset[str] | None = None
    ) -> Dedupe:
        """The batch's day is that of its newest file, so that a replay has the same."""
        written = [file.event_time for file in split.fresh if file.event_time is not None]
        path = table_path(self.lake, IDS)
        return Dedupe(
            spark=self.spark,
            service=self.service,
            path=path,
            logs=self.logs,
            shared=writing.shared,
            recent=self.recent_ids,
            day=max(written, default=writing.began_at).date(),
            leaving=[(one.earlier.file.file_id, one.by.file_id) for one in split.superseded],
            landed=landed,
            tries_until=again.tries_until if again else self.last_try(path),
        )

    def last_try(self, path: str) -> int:
        """The number of the last try that left ids."""
        if not any(table.dedupe for table in self.service.tables):
            return NO_VERSION
        return self.logs.last_version_at(path, app_id(self.service), again=True)

    def commit(self, writing: Writing, ending: Ending) -> None:
        """The rows of files that are tried again make room for what became of them now."""
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
            writing.write_own("ledger", rows, len(new) + len(changed), leaving)
            self.ledger.remember(new, at)


def _still_landing(again: Plan, read: Read, done: frozenset[str], split: Sorted) -> frozenset[str]:
    """The files that landed in the first attempt, and for which others leave: not those that end otherwise now."""
    turned = Turned.of(again, read.ends, done, split.superseded)
    return frozenset(file.file_id for file in again.landing) - ((turned.anew | turned.staying) - read.landed.keys())
