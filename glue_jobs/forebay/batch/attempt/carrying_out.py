"""From a plan to the ledger: all commits of a batch, the ledger's last.

In: a plan, of this attempt or of an earlier one. Out: its rows are in their tables, and the ledger has its files. Only where a
table fails at its commit are files read again, for the quarantine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from forebay.batch.attempt.attempt import Attempt, Begun
from forebay.batch.attempt.ending import Ending
from forebay.batch.attempt.reporting import reports_of
from forebay.batch.dedupe import Dedupe
from forebay.batch.ledger_change import change_times
from forebay.batch.one_pass.outcome import IN_VAIN_AT_MOST, Pass, ReadAgain
from forebay.batch.one_pass.spec import KeptOut
from forebay.batch.plan import Plan
from forebay.errors import Halt
from forebay.ledger.decision import files_to_read
from forebay.ledger.versions import Sorted, standing
from forebay.threads import both


@dataclass(frozen=True)
class CarryingOut(Attempt):
    """The commits of one batch. `run` again, it does what is left to do."""

    def go_on(self, plan: Plan) -> None:
        """With the plan of an earlier attempt, whose files were claimed then."""
        with self.stages.stage("claim"):
            claim = self.parts.ledger.claim(plan.files, self.service, plan.skipped, plan.cleared)
            split = plan.sorted_as_begun(claim)
            _must_be_unknown(plan, files_to_read(claim))
        self.writing.must_have_files(plan.staged, self.parts.plans.address(plan.generation, plan.batch))
        self.run(Begun(plan, split))

    def run(self, begun: Begun) -> None:
        self.parts.still_ours()
        self.tell_of_arrival(begun.plan.files, begun.split)
        with self.stages.stage("write"):
            dedupe = self.dedupe(begun.split, begun.plan.tries_until)
            again = partial(self.kept_out_of, begun, dedupe)
            unwritten = self.writing.commit(begun.plan, begun.split, dedupe, again)
        self.finish(Ending(begun.plan, begun.split, unwritten, self.parts.clock()))

    def finish(self, ending: Ending) -> None:
        """Commits the ledger, then reports the batch."""
        parts, ledger = self.parts, self.parts.ledger
        parts.still_ours()
        with self.stages.stage("ledger"):
            if put_again := ending.split.put_again:
                change_times(parts.spark, ledger.path, [seen.row for seen in put_again])
            if returning := ending.returning:
                change_times(parts.spark, ledger.path, returning, "outcome")
            if wait := ending.waiting_to_leave:
                change_times(parts.spark, ledger.path, wait, "reason", "tries")
                self.tell_of_arrival(ending.plan.files, ending.split)  # a look finds the mark from now on
            wrote = parts.ended.add(ending, self.writing, parts.clock())
            ledger.withheld.add(ending.waiting)
            both(
                lambda: parts.ended.keep_versions(self.writing) if wrote else None,
                lambda: parts.forget(ending.plan if ending.plan.ends else None),
            )
        for event in reports_of(self.service.name, ending, self.stages, parts.clock()):
            parts.emit(event)

    def kept_out_of(self, begun: Begun, dedupe: Dedupe, tables: Mapping[str, KeptOut]) -> Pass:
        """Only the rows of tables that failed at their commit, as records, to be kept in the quarantine. Their files are read
        once more, maybe by another driver than the one that began."""
        plan = begun.plan
        dedupe = replace(dedupe, planned=partial(self.writing.staged_ids, plan.staged))
        for _ in range(IN_VAIN_AT_MOST):
            try:
                made = self.read_unwritten(begun, dedupe, tables)
            except ReadAgain as found:
                self.tell_read_twice(str(found))
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

    def read_unwritten(self, begun: Begun, dedupe: Dedupe, tables: Mapping[str, KeptOut]) -> Pass:
        """Forgotten files and deletions land, as they did before, so their ids do not count."""
        unread = {end.file.file_id: end for end in begun.plan.without_bytes}
        files = [file for file in begun.plan.landing if file.file_id not in unread]
        made = self.parts.one_pass.of(
            files,
            self.service,
            shared=self.writing.shared_beside,
            unwritten=tables,
            standing=standing(begun.split.superseded),
            only_unwritten=True,
        )
        return self.parts.one_pass.without_duplicates(replace(made, ends=[*made.ends, *unread.values()]), dedupe)


def _must_be_unknown(plan: Plan, split: Sorted) -> None:
    """The files of the plan, to the ledger, which is committed last."""
    if not {end.file.file_id for end in plan.ends} <= split.new:
        raise Halt(
            f"batch {plan.batch} of generation {plan.generation} began with other files than those that are new to the "
            "ledger now: does another job write to this lake? Nothing was marked as done"
        )
