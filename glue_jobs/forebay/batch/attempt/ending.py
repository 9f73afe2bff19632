"""The end of a batch: its rows in the ledger, which is committed last; and the ledger, as the list of batches that have ended.

In: the plan of the batch, the versions of its keys, and the tables that could not be written. Out: one entry for each file that
was read or left out, and the rows of earlier files that change with them, in one commit with the batch's transaction. A ledger
that was lost, or that is older than the last batch left it, halts: files would be loaded a second time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from forebay.batch.accounting import Standing, entries_of, without_failed_replays
from forebay.batch.attempt.turns import waiting_in
from forebay.batch.commits import Commits
from forebay.batch.plan import Plan
from forebay.batch.writing import Writing
from forebay.content.end import FileEnd
from forebay.errors import Halt
from forebay.lake.layout import IDS, LEDGER, table_path
from forebay.lake.objects import Objects
from forebay.ledger.entry import COLUMNS, FORGOTTEN, REPLAY, WITHHELD, Entry
from forebay.ledger.last_versions import Versions
from forebay.ledger.ledger import Ledger
from forebay.ledger.versions import Earlier, Sorted, standing
from forebay.ledger.withheld import Waiting
from forebay.table.commit import Txn
from forebay.table.data_files.in_arrow import arrow_rows
from forebay.table.destination import Skipped
from forebay.table.kernel import TableLogs
from forebay.table.staging import look

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


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
        """The entries of the files that were read. An entry whose sum does not hold halts. A version that a rollback brought
        back keeps the id of the later one also when it is replayed."""
        entries = entries_of(self.ends, self.plan.fates, self.unwritten, self.standing, self.split.tries)
        by = {
            one: seen.earlier.row.get("superseded_by")
            for one, seen in self.split.replays.items()
            if seen.earlier.is_marked
        }
        return [replace(entry, superseded_by=by.get(entry.file.file_id)) for entry in entries]

    @cached_property
    def replaced(self) -> list[dict[str, Any]]:
        """Rows of the versions that other ones took the place of. One whose bytes were put again since then still waits."""
        waits = {seen.file.file_id: seen.wait for seen in self.split.returning}
        outdone = [one for one in self.split.leaving if not one.is_replay]
        return [one.left(self.unwritten, self.at) | waits.get(one.earlier.file.file_id, {}) for one in outdone]

    @property
    def waiting_to_leave(self) -> list[dict[str, Any]]:
        """Rows of superseded files that wait, or still do. Each announcement is one more try."""
        return [{**seen.row, **seen.wait} for seen in self.split.returning if seen.is_leaving]

    @cached_property
    def failed(self) -> list[dict[str, Any]]:
        """Rows of files that a retry could not read again: their earlier rows stay."""
        replays = {one: seen for one, seen in self.split.replays.items() if one not in self.unchanged}
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

    @cached_property
    def unchanged(self) -> set[str]:
        """The ids of replays that wait for a retry. It may be changing their rows in the ledger."""
        return waiting_in(self.plan.ends) & self.split.replays.keys()

    @property
    def returning(self) -> list[dict[str, Any]]:
        """Rows of those of them that no operator marked: their keys got the same bytes again. A job that starts must know. Rows
        that stand after a rollback stay while the file is skipped, or ignored by a rule."""
        replays = (seen for one, seen in self.split.replays.items() if one in self.unchanged)
        rows = [seen.earlier.with_time_of(seen.by) for seen in replays if not seen.earlier.is_marked]
        rows += [dict(seen.row) for seen in self.split.returning if seen.came_back]
        return [{**row, "outcome": REPLAY} for row in rows]

    @property
    def leaving(self) -> list[str]:
        """Ids of the files whose rows these replace, each once: a replay that was not read is in both."""
        ids = [row["file_id"] for row in self.changed] + [file.file_id for file in self.split.retried]
        return [one for one in dict.fromkeys(ids) if one not in self.unchanged]

    @property
    def waiting(self) -> Iterator[Waiting]:
        """Replays that S3 withheld, duplicates of those that are gone, and files that are back once their rows have left. They
        come again by themselves, as other files do."""
        yield from (Waiting(earlier.file, 1, self.at) for earlier in self.stand_ins)
        yield from (Waiting(Earlier.of(one.row).file, one.wait["tries"], self.at) for one in self.split.returning)
        replays, tries = self.split.replays, self.split.tries
        for end in self.plan.ends:
            if end.outcome in WITHHELD and end.file.file_id in replays:
                yield Waiting(end.file, tries.get(end.file.file_id, 1) + 1, self.at)


class EndedBatches:
    """Those of one lake, as one driver sees them."""

    def __init__(self, lake: str, ledger: Ledger, logs: TableLogs, ids: Objects) -> None:
        self.lake, self.ledger, self.logs, self._ids = lake, ledger, logs, ids
        self.had_ledger = False
        """Whether the lake was ever seen with one."""
        self._is_newest = False
        """Whether that one was compared with what the last batch left."""

    def has(self, txn: Txn, plan: Plan | None, *, has_ids: bool) -> bool:
        """Whether the batch has ended. `Halt` if the ledger was lost. A look at a ledger that was seen before costs no request:
        the batch's last commit notices one that is lost later."""
        self.had_ledger |= plan is not None and plan.had_ledger
        seen = look(self.logs, self.ledger.path, txn)
        if seen is None and self.had_ledger:
            raise Halt(self.ledger.lost)
        if seen is not None and not self._is_newest:
            self.ledger.last_versions.must_not_be_older(lambda: self._versions(has_ids=has_ids), self._ids)
            self._is_newest = True
        self.had_ledger = seen is not None
        return isinstance(seen, Skipped)

    def ids_must_stand(self) -> None:
        """At the version that was seen last. `Halt` if somebody restored older ids since the last batch."""
        version = self.logs.version_at(table_path(self.lake, IDS))
        self.ledger.last_versions.ids_must_stand(version, self._ids)

    def add(self, ending: Ending, writing: Writing, at: datetime) -> bool:
        """The new results of files that are tried again replace their earlier rows. Says whether there are any rows."""
        new, changed, leaving = ending.new, ending.changed, ending.leaving
        if new or changed:
            service = writing.service
            when = {"claimed_at": writing.began_at, "committed_at": at, "service_version": service.version}
            shared = {**writing.shared, **when}
            rows: DataFrame | pa.Table
            if leaving:
                rows = self.ledger.frame(new, changed, **shared)
            else:
                rows = arrow_rows((entry.row(**shared) for entry in new), COLUMNS)
            table = replace(writing.own(LEDGER), if_lost=self.ledger.lost if self.had_ledger else "")
            writing.write_beside(table, rows, len(new) + len(changed), leaving)
            self.had_ledger = True
            self.ledger.remember(new, at, more=len(new) + len(changed) - len(leaving))
        return bool(new or changed)

    def keep_versions(self, writing: Commits) -> None:
        """Those that the tables have now, for the next driver."""
        now = self._versions(has_ids=writing.service.drops_duplicates)
        self.ledger.last_versions.keep(now, own_commits=int(IDS in writing.added_to))

    def _versions(self, *, has_ids: bool) -> Versions:
        """Those of the ledger, and of the ids."""
        return Versions.of(
            lambda name: self.logs.version_at(table_path(self.lake, name)), self.ledger.rows, has_ids=has_ids
        )
