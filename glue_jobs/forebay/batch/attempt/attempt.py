"""One attempt at a batch, by one driver.

In: files, read or read again. Out: a pass over them. An attempt keeps its declarations and its transaction. If people were
erased meanwhile, the driver makes another attempt.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from forebay.batch.accounting import Standing
from forebay.batch.attempt.parts import Parts
from forebay.batch.attempt.reporting import Stages
from forebay.batch.dedupe import Dedupe
from forebay.batch.events import BatchReadTwice
from forebay.batch.one_pass.outcome import Pass
from forebay.batch.one_pass.told import KeptOut, Known
from forebay.batch.plan import Plan
from forebay.batch.writing import Writing
from forebay.declaration.service import Service
from forebay.lake.layout import IDS, table_path
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.versions import Sorted


@dataclass(frozen=True)
class Begun:
    """A batch up to its plan."""

    plan: Plan
    split: Sorted
    dedupe: Dedupe


@dataclass(frozen=True)
class Attempt:
    """The common part of beginning a batch and of carrying out its plan."""

    parts: Parts
    writing: Writing
    stages: Stages

    @property
    def service(self) -> Service:
        return self.writing.service

    def claimed(
        self, files: Sequence[LandedFile], skipped: Collection[str], cleared: Collection[str] | None = None
    ) -> Claim:
        return self.parts.ledger.claim(files, self.service, skipped, cleared)

    def read(
        self,
        files: Sequence[LandedFile],
        kept_out: Mapping[str, KeptOut],
        standing: Standing,
        *,
        known: Mapping[str, Known] | None = None,
        only_unwritten: bool = False,
    ) -> Pass:
        return self.parts.one_pass.of(
            files,
            self.service,
            shared={**self.writing.shared, "at": self.writing.began_at},
            unwritten=kept_out,
            standing=standing,
            known=known,
            only_unwritten=only_unwritten,
        )

    def tell_read_twice(self, why: str) -> None:
        self.parts.emit(BatchReadTwice(service=self.service.name, batch=self.writing.txn.version, why=why))

    def dedupe(self, split: Sorted, tries_until: int | None) -> Dedupe:
        """The batch's day is that of its newest file, so that a replay has the same."""
        written = [file.event_time for file in split.fresh if file.event_time is not None]
        return Dedupe(
            spark=self.parts.spark,
            service=self.service,
            path=table_path(self.parts.lake, IDS),
            logs=self.parts.logs,
            shared=self.writing.shared,
            recent=self.parts.recent_ids,
            day=max(written, default=self.writing.began_at).date(),
            leaving=[(one.earlier.file.file_id, one.by.file_id) for one in split.superseded],
            tries_until=tries_until,
        )
