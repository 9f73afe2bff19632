"""A batch: its file names become rows, each exactly once in the table that it belongs to. The ledger is written last.

foreachBatch calls `Batch.process`. Spark may call it again with the same files. Every commit carries the transaction (service
and checkpoint generation, batch id), so a finished commit is recognised and a missing one is made. One bad record, file or
table never stops the others; `Halt` stops everything, before anything is marked as done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from forebay.batch.attempt.attempt import Parts
from forebay.batch.attempt.beginning import Beginning
from forebay.batch.attempt.carrying_out import CarryingOut
from forebay.batch.attempt.reporting import Stages
from forebay.batch.attempt.without_plan import begun_in
from forebay.batch.events import BatchRepeated
from forebay.batch.plan import Plan
from forebay.declaration.kept.pinned import unpinned
from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.lake.layout import application, table_path
from forebay.lake.log.tables import tables_of
from forebay.lake.paused import ALL
from forebay.landed_file import LandedFile
from forebay.ledger.ledger import utc
from forebay.notification.order import written_later
from forebay.privacy.erased import without_erased
from forebay.table.commit import LogFailed, Txn
from forebay.table.kernel import TableLogs
from forebay.threads import answers_by, both

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Batch(Parts):
    """The batches of one service and one checkpoint, one after the other."""

    @cached_property
    def generation(self) -> str:
        """Asked for with the first batch: before that, a new stream has no name."""
        return self.generation_of()

    def process(self, names: DataFrame, batch_id: int) -> None:
        """The files of these rows of the source. A batch ignores its other columns."""
        files = [
            LandedFile(
                row.bucket, row.key, row.size, row.etag or "", row.version_id, row.sequencer, utc(row.event_time)
            )
            for row in names.collect()
        ]
        self.load(files, batch_id)

    def load(self, files: Sequence[LandedFile], batch_id: int) -> None:
        """Done when it returns; done already when the ledger has the batch."""
        files = self.ledger.own(_latest_of(files))
        txn = self.txn(self.generation, batch_id)
        plan = self.plans.of(self.generation, batch_id) if self.may_have_begun(batch_id) else None
        if self.has_ended(txn, plan):
            self.must_know(files, txn)
            self.forget(plan)
            self.emit(BatchRepeated(service=self.service.name, batch=batch_id))
        elif plan is not None and plan.settled:
            self.go_on(plan)
        else:
            self.withdraw(plan)
            self.begin(files, txn)

    def finish_earlier(self) -> None:
        """Finishes batches that an earlier driver left unfinished, of whatever generation, under their own transaction. A retry
        may be waiting for any of them. Spark replays the one of its checkpoint, which is done then. Run again, it finds nothing
        to do."""
        self.takeover.look()
        for plan in self.plans.left():
            if self.has_ended(self.txn(plan.generation, plan.batch), plan):
                self.forget(plan)
            elif plan.settled and (self.takeover.binds(plan) or self.has_begun(plan)):
                self.go_on(plan)
            else:
                self.withdraw(plan)

    def has_begun(self, plan: Plan) -> bool:
        """Whether a table has the batch."""
        return bool(begun_in(self.writing_of(plan, self.service)))

    def close(self) -> None:
        """Waits for the tables' checkpoints that are under way."""
        self.logs.close()

    def txn(self, generation: str, batch: int) -> Txn:
        return Txn(application(self.service.name, generation), batch)

    def has_ended(self, txn: Txn, plan: Plan | None) -> bool:
        return self.ended.has(txn, plan, has_ids=self.service.drops_duplicates)

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
        self.takeover.complete(self.generation)
        stages = Stages()
        service, skipped = both(lambda: self.in_force(txn), lambda: self.skips.among(files))
        while True:
            self.service = without_erased(service, self.lake)
            writing = self.writing(self.service, self.generation, txn.version)
            beginning = Beginning(self, writing, stages)
            begun = beginning.run(files, skipped)
            if not beginning.is_overtaken(begun):
                break
            self.withdraw(begun.plan)
            skipped = self.skips.among(files)
        writing = replace(writing, began_at=begun.plan.began_at, ahead=begun.plan.ahead)
        CarryingOut(self, writing, stages).run(replace(begun, plan=self.plans.settle(begun.plan)))

    def in_force(self, txn: Txn) -> Service:
        service = self.service if self.declarations is None else self.declarations.in_force()
        return with_begun_tables(service, self.lake, txn, self.logs, at_once=self.tables_at_once)

    def go_on(self, plan: Plan) -> None:
        """With its own declarations, from a plan to the end."""
        writing = self.writing_of(plan, unpinned(plan.service, f"batch {plan.batch}"))
        CarryingOut(self, writing, Stages()).go_on(plan)


def _latest_of(files: Sequence[LandedFile]) -> list[LandedFile]:
    """In a bucket without versions, a key that gets its first bytes back is announced as the same file again. The latest
    announcement of a file counts: an earlier one would make it older than the versions in between."""
    latest: dict[str, LandedFile] = {}
    for file in files:
        before = latest.setdefault(file.file_id, file)
        latest[file.file_id] = file if written_later(file, before) else before
    return [latest[file.file_id] for file in files]


def with_begun_tables(service: Service, lake: str, txn: Txn, logs: TableLogs, *, at_once: int) -> Service:
    """The service without pauses of tables that had the batch before: somebody deleted its plan, which knew that. Nor are all
    tables paused at once, if one of them has the batch: that pause came later. A table whose log cannot be read stays paused,
    and stops no other one. `at_once` tables are asked at the same time."""

    def has_batch(table: str) -> bool:
        try:
            return logs.has(table_path(lake, table), txn)
        except LogFailed:
            return False

    paused = {*service.paused}
    names = tables_of(lake) if ALL in paused else paused
    begun = {name for name, has in answers_by(has_batch, names, at_once).items() if has}
    return service.with_paused(paused - begun - {ALL}) if begun else service
