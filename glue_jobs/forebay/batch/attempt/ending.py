"""Makes the ledger's rows of a batch, after its tables have theirs.

Pure. In: the plan of the batch, the versions of its keys, and the tables that could not be written. Out: one entry for each
file that was read or left out, and the rows of earlier files that change with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from forebay.batch.accounting import Standing, entries_of, without_failed_replays
from forebay.batch.plan import Plan
from forebay.content.end import FileEnd
from forebay.ledger.entry import FORGOTTEN, REPLAY, WITHHELD, Entry
from forebay.ledger.versions import Earlier, Sorted, standing
from forebay.ledger.withheld import Waiting


@dataclass(frozen=True)
class Ending:
    """`unwritten` says why a table could not be written."""

    plan: Plan
    split: Sorted
    unwritten: Mapping[str, str]
    at: datetime

    @cached_property
    def ends(self) -> tuple[FileEnd, ...]:
        """The ends of the files that get their own entry."""
        ends = without_failed_replays(self.plan.ends, self.split)
        return tuple(end for end in ends if end.outcome != FORGOTTEN)

    @cached_property
    def standing(self) -> Standing:
        return standing(self.split.leaving)

    @cached_property
    def entries(self) -> list[Entry]:
        """The entries of the files that were read. An entry whose sum does not hold halts."""
        return entries_of(self.ends, self.plan.fates, self.unwritten, self.standing, self.split.tries)

    @cached_property
    def replaced(self) -> list[dict[str, Any]]:
        """Rows of the versions that other ones took the place of."""
        return [earlier.left(self.unwritten, self.at) for earlier in self.split.leaving if not earlier.is_replay]

    @cached_property
    def failed(self) -> list[dict[str, Any]]:
        """Rows of files that a retry could not read again: their earlier rows stay."""
        replays = self.split.replays
        ends = [end for end in self.plan.ends if not end.lands and end.file.file_id in replays]
        return [replays[end.file.file_id].not_replayed(end.outcome, end.detail or end.reason or "") for end in ends]

    @cached_property
    def stand_ins(self) -> list[Earlier]:
        """Duplicates of those of them that are gone. They have the same bytes, so they are read in their place. Two that are
        gone may have the same one."""
        gone = (end.file.file_id for end in self.plan.ends if end.outcome in ("missing", "changed"))
        found = (self.split.stand_ins[one] for one in gone if one in self.split.stand_ins)
        return list({one.file.file_id: one for one in found}.values())

    @cached_property
    def forgotten(self) -> list[dict[str, Any]]:
        replays = self.split.replays
        return [replays[end.file.file_id].forgotten(self.unwritten, self.at) for end in self.plan.forgotten]

    @property
    def new(self) -> list[Entry]:
        return [*self.entries, *self.split.left_out]

    @property
    def changed(self) -> list[dict[str, Any]]:
        marked = [{**earlier.row, "outcome": REPLAY} for earlier in self.stand_ins]
        return [*self.replaced, *self.failed, *self.forgotten, *marked]

    @property
    def leaving(self) -> list[str]:
        """Ids of the files whose rows these replace, each once: a replay that was not read is in both."""
        ids = [row["file_id"] for row in self.changed] + [file.file_id for file in self.split.retried]
        return [*dict.fromkeys(ids)]

    @property
    def waiting(self) -> Iterator[Waiting]:
        """Replays that S3 withheld, and duplicates of those that are gone. They come again by themselves, as other files do."""
        yield from (Waiting(earlier.file, 1, self.at) for earlier in self.stand_ins)
        replays, tries = self.split.replays, self.split.tries
        for end in self.plan.ends:
            if end.outcome in WITHHELD and end.file.file_id in replays:
                yield Waiting(end.file, tries.get(end.file.file_id, 1) + 1, self.at)
