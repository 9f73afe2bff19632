"""From files to a plan that binds every later attempt. Before that plan nothing happened.

In: the files of a batch. Out: `Begun`. The files are read again until no file and no table has to be left out of what was read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from forebay.batch.accounting import Fate, without_failed_replays
from forebay.batch.attempt.attempt import Attempt, Begun
from forebay.batch.attempt.seen import Seen
from forebay.batch.attempt.turns import waiting_in
from forebay.batch.attempt.without_plan import Brought, must_bring_the_same
from forebay.batch.dedupe import Dedupe
from forebay.batch.one_pass.outcome import Pass, ReadAgain
from forebay.batch.one_pass.spec import KeptOut
from forebay.batch.plan import Plan, Staged
from forebay.batch.retrying.planning import app_id
from forebay.content.end import FileEnd
from forebay.declaration.kept.pinned import pinned
from forebay.lake.layout import IDS, table_path
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.decision import decide_files, files_to_read
from forebay.ledger.versions import Sorted
from forebay.privacy.erased import without_erased
from forebay.table.kernel import NO_VERSION


@dataclass(frozen=True)
class Beginning(Attempt):
    """The beginning of one batch."""

    def run(self, files: Sequence[LandedFile], skipped: Collection[str]) -> Begun:
        with self.stages.stage("claim"):
            claim = self.parts.ledger.claim(files, self.service, skipped)
            to_read = files_to_read(claim)
            self.tell_of_arrival(files, to_read)
        at = self.writing.began_at
        writing = replace(self.writing, began_at=(began_at := claim.begins(at, to_read)), ahead=began_at - at)
        return replace(self, writing=writing).begun(claim, to_read)

    def is_overtaken(self, begun: Begun) -> bool:
        """Whether a plan that is durable, and not settled, is out of date: people were erased since the batch began, or a retry
        is running or has ids that the batch does not know. An erasure writes its list before it looks for plans, and a retry
        its ids, so one of the two sees the other."""
        parts, files = self.parts, begun.plan.files
        if begun.plan.settled:
            return False
        if without_erased(self.service, parts.lake) != self.service or self.last_try() != begun.plan.tries_until:
            return True
        again = partial(parts.ledger.claim, files, self.service, parts.skips.among(files))
        return parts.turns.lost(begun.split, again, waiting_in(begun.plan.ends))

    def begun(self, claim: Claim, to_read: Sorted) -> Begun:
        """The plan has the files as the claim has them, with the latest time of each. A batch that resumes decides by these."""
        seen = Seen(to_read, self.parts.turns.taken(to_read))
        while True:
            made = None
            try:
                with self.stages.stage("read"):
                    made = self.parts.one_pass.of(
                        seen.to_read,
                        self.service,
                        shared=self.writing.shared_beside,
                        unwritten=seen.kept_out or {},
                        standing=seen.standing,
                        known=seen.known,
                    )
                    if made.read_twice:
                        self.tell_read_twice(made.read_twice)
                    made = replace(made, ends=[*made.ends, *seen.ends])
                    split = decide_files(claim, made.landed)
                    seen.must_agree_with(made, split)
                with self.stages.stage("write"):
                    dedupe = self.dedupe(split, self.last_try())
                    made = self.parts.one_pass.without_duplicates(made, dedupe)
                    return self.staged(claim.files, to_read, split, dedupe, made, seen.kept_out)
            except ReadAgain as found:
                if made is not None:
                    made.undo()  # no plan names its files, which is not so certain of other failures
                self.tell_read_twice(str(found))
                seen.learn(found)

    def staged(
        self,
        files: Sequence[LandedFile],
        to_read: Sorted,
        split: Sorted,
        dedupe: Dedupe,
        made: Pass,
        kept_out: Mapping[str, KeptOut] | None,
    ) -> Begun:
        writing = self.writing
        fresh = {file.file_id for file in split.fresh}
        ends = [end for end in made.ends if end.file.file_id in fresh]
        fates = [fate for fate in made.fates if fate.file_id in made.landed]
        ending = without_failed_replays(ends, split)
        staged = writing.stage(made, ending, fates, split, kept_out)
        brought = Brought(ending, fates, staged.unwritten, to_read.superseded, split.leaving)
        if writing.may_have_begun or brought.tables - staged.tables.keys():
            address = self.parts.plans.address(writing.generation, writing.txn.version)
            must_bring_the_same(brought, writing, staged, address)
        return Begun(self.plan_of(files, split, ends, fates, dedupe, staged), split)

    def plan_of(
        self,
        files: Sequence[LandedFile],
        split: Sorted,
        ends: Sequence[FileEnd],
        fates: Sequence[Fate],
        dedupe: Dedupe,
        staged: Staged,
    ) -> Plan:
        """The plan to go by, and its data files. It is durable before anything is committed."""
        may_be_overtaken = self.parts.turns.watched(split) or self.service.subject or dedupe.wanted
        plan = Plan(
            generation=self.writing.generation,
            batch=self.writing.txn.version,
            began_at=self.writing.began_at,
            ahead=self.writing.ahead,
            service=pinned(self.service),
            files=tuple(files),
            ends=tuple(replace(end, lines_before={}) for end in ends),
            fates=tuple(fates),
            tries_until=dedupe.tries_until,
            skipped=split.skipped,
            left_out=split.left_out,
            had_ledger=self.parts.ended.had_ledger,
            staged=staged,
            settled=not (ends and may_be_overtaken),
        )
        if plan.ends:
            self.parts.plans.pin(plan)
        return plan

    def last_try(self) -> int:
        """The number of the last try that left ids, which nobody may have restored."""
        if not self.service.drops_duplicates:
            return NO_VERSION
        number = self.parts.logs.last_version_at(table_path(self.parts.lake, IDS), app_id(self.service), again=True)
        self.parts.ended.ids_must_stand()
        return number
