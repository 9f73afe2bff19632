"""The parts that all attempts of a driver share.

In: the declarations of an attempt, and its batch or its plan. Out: its `Writing`. A plan that is no longer needed goes
together with data files that no log will name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from forebay.batch.attempt.ended import EndedBatches
from forebay.batch.attempt.turns import Turns
from forebay.batch.late_commits import LateCommits
from forebay.batch.new_tables import NewTables
from forebay.batch.one_pass.driver import OnePass
from forebay.batch.plan import Plan, Plans
from forebay.batch.recent_ids import RecentIds
from forebay.batch.writing import Writing
from forebay.declaration.service import Service
from forebay.events import Emit
from forebay.lake.layout import application
from forebay.landed_file import LandedFile
from forebay.ledger.ledger import Ledger
from forebay.ledger.skips import Skips
from forebay.table.catalog import Catalog
from forebay.table.commit import Txn
from forebay.table.kernel import TableLogs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Arriving = Callable[[Service, Collection[LandedFile], Collection[LandedFile]], None]
"""Gets the files of a batch, and those of them that it reads, before the batch writes anything."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """`may_have_begun` says whether an earlier driver may have begun a batch with this number."""

    spark: SparkSession
    lake: str
    ledger: Ledger
    ended: EndedBatches
    plans: Plans
    logs: TableLogs
    one_pass: OnePass
    new_tables: NewTables
    recent_ids: RecentIds
    skips: Skips
    turns: Turns
    late: LateCommits
    catalog: Catalog | None
    tables_at_once: int
    emit: Emit
    clock: Callable[[], datetime]
    still_ours: Callable[[], None]
    arriving: Arriving
    may_have_begun: Callable[[int], bool]

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
        return replace(writing, began_at=plan.began_at, late=self.late, may_have_begun=True)

    def forget(self, plan: Plan | None, service: Service) -> None:
        """It is carried out. Rows that replaced others were written by Spark once more."""
        if plan is not None:
            self.writing_of(plan, service).delete(one for one in plan.staged if one.replaces)
            self.plans.forget(plan.generation, plan.batch)

    def withdraw(self, plan: Plan | None, service: Service) -> None:
        """One that was never settled: nothing was committed by it. It goes before its data files do, for a driver that was
        paused may settle a plan that is there."""
        if plan is not None:
            self.plans.forget(plan.generation, plan.batch)
            self.writing_of(plan, service).delete(plan.staged)
