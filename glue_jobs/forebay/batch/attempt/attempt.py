"""One attempt at a batch, by one driver; and the parts that all attempts of the driver share.

In: files, read or read again. Out: a pass over them. An attempt keeps its declarations and its transaction. If people were
erased meanwhile, the driver makes another attempt. A plan that is no longer needed goes together with data files that no log
will name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from forebay.batch.attempt.ending import EndedBatches
from forebay.batch.attempt.reporting import Stages
from forebay.batch.attempt.takeover import Takeover
from forebay.batch.attempt.turns import Turns
from forebay.batch.dedupe import Dedupe
from forebay.batch.events import BatchReadTwice
from forebay.batch.late_commits import LateCommits
from forebay.batch.new_tables import NewTables
from forebay.batch.one_pass.driver import OnePass
from forebay.batch.plan import Plan, Plans, delete_files
from forebay.batch.recent_ids import RecentIds
from forebay.batch.writing import Writing
from forebay.content.limits import Limits
from forebay.declaration.kept.newest import Declarations
from forebay.declaration.service import Service
from forebay.events import Emit
from forebay.lake.layout import IDS, PLANS, application, new_tables_of, plans_of, skips_of, streams_of, table_path
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.ledger import Ledger
from forebay.ledger.skips import Skips
from forebay.ledger.versions import Sorted
from forebay.table.catalog import Catalog
from forebay.table.commit import Txn
from forebay.table.kernel import TableLogs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Arriving = Callable[[Service, Collection[LandedFile], Collection[LandedFile]], None]
"""Gets the files of a batch, and those whose rows it writes or removes: before it reads, and again before its first commit."""


class Parts:
    """`service` are the declarations of the last batch that began, or those of the start. `may_have_begun` says whether an
    earlier driver may have begun a batch with this number."""

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
        self.spark, self.service, self.lake, self.ledger, self.emit = spark, service, lake, ledger, emit
        self.generation_of, self.declarations, self.catalog = generation, declarations, catalog
        self.tables_at_once, self.clock, self.still_ours = tables_at_once, clock, still_ours
        self.arriving, self.may_have_begun = arriving, may_have_begun
        ids = open_objects(table_path(lake, IDS))
        self.logs = TableLogs(spark, emit=emit)
        self.ended = EndedBatches(lake, ledger, self.logs, ids)
        self.plans = Plans(open_objects(f"{lake}/{PLANS}"), service.name)
        self.takeover = Takeover(open_objects(streams_of(lake)), service.name, still_ours)
        self.one_pass = OnePass(spark, lake, limits or Limits(), self.logs)
        self.new_tables = NewTables(open_objects(new_tables_of(lake, service.name)))
        self.recent_ids = RecentIds(ids)
        self.skips = Skips(open_objects(skips_of(lake)))
        self.turns = Turns(open_objects(plans_of(lake, service.name)))
        self.late = LateCommits(
            service=service.name, since=clock(), wait_s=late_commit_wait_s, emit=emit, clock=clock, sleep=sleep
        )

    def writing(self, service: Service, generation: str, batch: int) -> Writing:
        """Of a batch that begins."""
        return Writing(
            spark=self.spark,
            service=service,
            lake=self.lake,
            generation=generation,
            txn=Txn(application(service.name, generation), batch),
            began_at=self.clock(),
            logs=self.logs,
            new_tables=self.new_tables,
            tables_at_once=self.tables_at_once,
            emit=self.emit,
            catalog=self.catalog,
            may_have_begun=self.may_have_begun(batch),
        )

    def writing_of(self, plan: Plan, service: Service) -> Writing:
        """Of a batch that continues. Another driver may have begun it."""
        writing = self.writing(service, plan.generation, plan.batch)
        return replace(writing, began_at=plan.began_at, ahead=plan.ahead, late=self.late, may_have_begun=True)

    def forget(self, plan: Plan | None) -> None:
        """It is carried out. Rows that replaced others were written by Spark once more."""
        if plan is not None:
            delete_files((file for one in plan.staged if one.replaces for file in one.files), self.lake, plan.vault)
            self.plans.forget(plan.generation, plan.batch)

    def withdraw(self, plan: Plan | None) -> None:
        """One that was never settled, or that a driver wrote after it had lost its lease: nothing was committed by it. It goes
        before its data files do, for a driver that was paused may settle a plan that is there."""
        if plan is not None:
            self.plans.forget(plan.generation, plan.batch)
            delete_files(plan.staged.files, self.lake, plan.vault)


@dataclass(frozen=True)
class Begun:
    """A batch up to its plan."""

    plan: Plan
    split: Sorted


@dataclass(frozen=True)
class Attempt:
    """The common part of beginning a batch and of carrying out its plan."""

    parts: Parts
    writing: Writing
    stages: Stages

    @property
    def service(self) -> Service:
        return self.writing.service

    def tell_of_arrival(self, files: Sequence[LandedFile], split: Sorted) -> None:
        """A file that is read, or an earlier version that leaves for it, may change a period that was complete. The watch
        hears of it before the plan, and again once the plan is there: a look in between cannot see a file that was deleted. The
        declarations are those in force, as the watch has them, also where the plan has earlier ones."""
        to_read = [file for file in split.fresh if not file.is_deletion]
        others = [*(one.earlier for one in split.superseded), *split.returning]
        self.parts.arriving(self.parts.service, files, [*to_read, *(seen.file for seen in others)])

    def tell_read_twice(self, why: str) -> None:
        self.parts.emit(BatchReadTwice(**self.writing.where, why=why))

    def dedupe(self, split: Sorted, tries_until: int | None) -> Dedupe:
        """The batch's day is that of its newest file, so that a replay has the same."""
        written = [file.event_time.date() for file in split.fresh if file.event_time is not None]
        return Dedupe(
            writing=self.writing,
            recent=self.parts.recent_ids,
            day=max(written, default=self.writing.day),
            leaving=[(one.earlier.file.file_id, one.by.file_id) for one in split.superseded],
            tries_until=tries_until,
        )
