"""The heart: a batch of file names becomes rows, each exactly once in the table that it belongs to. The ledger is written
last.

foreachBatch calls `Batch.process`. Spark may call it again with the same files. Every commit carries the transaction (service
and checkpoint generation, batch id), so a finished commit is recognised and a missing one is made. One bad record, file or
table never stops the others; `Halt` stops everything, before anything is marked as done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from forebay.batch.attempt.attempt import Arriving, Parts
from forebay.batch.attempt.beginning import Beginning
from forebay.batch.attempt.carrying_out import CarryingOut
from forebay.batch.attempt.ending import EndedBatches
from forebay.batch.attempt.reporting import Stages
from forebay.batch.attempt.turns import Turns
from forebay.batch.declarations import Declarations, with_begun_tables
from forebay.batch.events import BatchRepeated
from forebay.batch.late_commits import LateCommits
from forebay.batch.names import files_of
from forebay.batch.new_tables import NewTables
from forebay.batch.one_pass.driver import OnePass
from forebay.batch.plan import Plan, Plans
from forebay.batch.recent_ids import RecentIds
from forebay.content.limits import Limits
from forebay.declaration.kept.pinned import unpinned
from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.events import Emit
from forebay.lake.layout import IDS, PLANS, application, new_tables_of, plans_of, skips_of, table_path
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.ledger import Ledger
from forebay.ledger.skips import Skips
from forebay.privacy.erased import without_erased
from forebay.table.catalog import Catalog
from forebay.table.commit import Txn
from forebay.table.kernel import TableLogs
from forebay.threads import both

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Batch:
    """The batches of one service and one checkpoint, one after the other. `service` are the declarations of the last one that
    began, or those of the start."""

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
        self.logs = TableLogs(spark, emit=emit)
        ids = open_objects(table_path(lake, IDS))
        self.parts = Parts(
            spark=spark,
            lake=lake,
            ledger=ledger,
            ended=EndedBatches(lake, ledger, self.logs, ids),
            plans=Plans(open_objects(f"{lake}/{PLANS}"), service.name),
            logs=self.logs,
            one_pass=OnePass(spark, lake, limits or Limits(), self.logs),
            new_tables=NewTables(open_objects(new_tables_of(lake, service.name))),
            recent_ids=RecentIds(ids),
            skips=Skips(open_objects(skips_of(lake))),
            turns=Turns(open_objects(plans_of(lake, service.name))),
            late=LateCommits(
                service=service.name, since=clock(), wait_s=late_commit_wait_s, emit=emit, clock=clock, sleep=sleep
            ),
            catalog=catalog,
            tables_at_once=tables_at_once,
            emit=emit,
            clock=clock,
            still_ours=still_ours,
            arriving=arriving,
            may_have_begun=may_have_begun,
        )

    @cached_property
    def generation(self) -> str:
        """Asked for with the first batch: before that, a new stream has no name."""
        return self.generation_of()

    def process(self, names: DataFrame, batch_id: int) -> None:
        """Done when it returns; done already when the ledger has the batch."""
        files = self.ledger.own(files_of(names))
        txn = self.txn(self.generation, batch_id)
        plan = self.parts.plans.of(self.generation, batch_id) if self.parts.may_have_begun(batch_id) else None
        if self.has_ended(txn, plan):
            self.must_know(files, txn)
            self.parts.forget(plan)
            self.emit(BatchRepeated(service=self.service.name, batch=batch_id))
        elif plan is not None and plan.settled:
            self.go_on(plan)
        else:
            self.parts.withdraw(plan)
            self.begin(files, txn)

    def finish_earlier(self) -> None:
        """Finishes batches that an earlier driver left unfinished, of whatever generation, under their own transaction. A retry
        may be waiting for any of them. Spark replays the one of its checkpoint, which is done then. Run again, it finds nothing
        to do."""
        for plan in self.parts.plans.left():
            if self.has_ended(self.txn(plan.generation, plan.batch), plan):
                self.parts.forget(plan)
            elif plan.settled:
                self.go_on(plan)
            else:
                self.parts.withdraw(plan)

    def close(self) -> None:
        """Waits for the tables' checkpoints that are under way."""
        self.logs.close()

    def txn(self, generation: str, batch: int) -> Txn:
        return Txn(application(self.service.name, generation), batch)

    def has_ended(self, txn: Txn, plan: Plan | None) -> bool:
        return self.parts.ended.has(txn, plan, has_ids=self.service.drops_duplicates)

    def must_know(self, files: Sequence[LandedFile], txn: Txn) -> None:
        """Done is a claim about these very files."""
        if unknown := self.ledger.unknown(files):
            raise Halt(
                f"the ledger has batch {txn.version} of {txn.app_id}, but lacks {len(unknown)} of its files, such as "
                f"{unknown[0].uri}: this stream numbers its batches from 0 again. Start with a new --checkpoint. Loaded "
                "files are not loaded again, and no message was deleted"
            )

    def begin(self, files: Sequence[LandedFile], txn: Txn) -> None:
        """With the declarations in force. Where something came between, the batch begins again."""
        parts, stages = self.parts, Stages()
        service, skipped = both(lambda: self.in_force(txn), lambda: parts.skips.among(files))
        while True:
            self.service = without_erased(service, self.lake)
            writing = parts.writing(self.service, self.generation, txn.version)
            beginning = Beginning(parts, writing, stages)
            begun = beginning.run(files, skipped)
            if not beginning.is_overtaken(begun):
                break
            parts.withdraw(begun.plan)
            skipped = parts.skips.among(files)
        CarryingOut(parts, writing, stages).run(replace(begun, plan=parts.plans.settle(begun.plan)))

    def in_force(self, txn: Txn) -> Service:
        service = self.service if self.declarations is None else self.declarations.in_force()
        return with_begun_tables(service, self.lake, txn, self.logs, at_once=self.parts.tables_at_once)

    def go_on(self, plan: Plan) -> None:
        """With its own declarations, from a plan to the end."""
        writing = self.parts.writing_of(plan, unpinned(plan.service, f"batch {plan.batch}"))
        CarryingOut(self.parts, writing, Stages()).go_on(plan)
