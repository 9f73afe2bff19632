"""The commits of a batch: its staged files become rows of its tables, and of what is kept beside them, once each.

In: the batch's plan, which names the files. Out: which tables were not written, and why; their rows are in the quarantine
then. It reads only the plan, the tables' logs, and files of the lake, so a batch can be repeated whatever happened to its
landed objects. Every commit is counted; a table that already has the batch is counted by its commit. Numbers that differ from
the plan's halt everything.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forebay.batch.accounting import (
    Fate,
    arriving,
    by_declaration,
    by_table,
    quarantined_rows,
    rows_of,
    without_failed_replays,
)
from forebay.batch.dedupe import DUPLICATE, Dedupe
from forebay.batch.events import DuplicatesDropped, RowsAppended
from forebay.batch.expectations import COLUMNS as QUALITY_COLUMNS
from forebay.batch.expectations import verdicts
from forebay.batch.late_commits import LateCommits
from forebay.batch.one_pass.held import MOST_DETAIL
from forebay.batch.one_pass.outcome import Pass, ReadAgain
from forebay.batch.one_pass.spec import KeptOut
from forebay.batch.plan import Plan
from forebay.batch.reasons import TABLE_FAILED
from forebay.batch.staging import Staging
from forebay.declaration.table import Table
from forebay.declared_sql.columns import rules_of
from forebay.errors import Halt
from forebay.lake.layout import IDS, PARKED, QUALITY, QUARANTINE, VAULT, table_path
from forebay.ledger.versions import Sorted, Superseded, standing
from forebay.table.catalog import Catalog
from forebay.table.commit import LogFailed
from forebay.table.data_files.in_arrow import arrow_rows
from forebay.table.destination import Appended, AppendResult, Destination, Failed, Skipped
from forebay.table.fan_out import ATTEMPTS, written_anew
from forebay.table.from_records import with_record_columns
from forebay.table.kernel import Seen
from forebay.table.removal import remove_then_append
from forebay.table.replace import Staying, replace
from forebay.table.schema import misfits
from forebay.table.staged import StagedTable, together

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KeptOutAgain = Callable[[Mapping[str, KeptOut]], Pass]

FORGET_EVERY = 50
"""Batches, after which ids that no window reaches are removed."""


@dataclass(frozen=True, kw_only=True)
class Writing(Staging):
    """The writing of one batch; run again, it does what is left to do."""

    catalog: Catalog | None = None
    late: LateCommits | None = None
    """Only if another driver began this batch."""
    may_have_begun: bool = True
    """Whether this batch may have been tried before."""

    def commit(self, plan: Plan, split: Sorted, dedupe: Dedupe, again: KeptOutAgain) -> dict[str, str]:
        """Tables first, then held records, which include the rows of tables that were not written. `again` gives the records
        of tables that fail only now. Returns tables that were not written, and why."""
        staged, fates = plan.staged, plan.fates
        self.keep_verdicts(fates)
        unwritten = {**staged.unwritten, **(self.unwritten_before() if self.may_have_begun else {})}
        ready = {name: one for name, one in staged.tables.items() if name not in unwritten}
        leaving = {name: ids for name, ids in self.leaving_tables(split).items() if name not in unwritten}
        failed = self.commit_tables(fates, ready, leaving)
        for table in sorted(leaving.keys() - plan.tables):
            if self.failed(table, 0, self.removed(table, leaving[table])):
                failed.add(table)
        unwritten |= dict.fromkeys(failed, TABLE_FAILED)
        late = {name: why for name, why in unwritten.items() if name not in staged.unwritten}
        self.commit_quarantine(plan, split, unwritten, late, again)
        self.commit_beside(self.own(PARKED), staged.beside.get(PARKED), rows_of(fates, "park"), split.leaving_parked)
        if dedupe.wanted:
            self.remember(self.without(staged.beside.get(IDS), late), unwritten, fates, dedupe, split.leaving)
        if self.service.vault:
            sealed = staged.beside.get(VAULT)
            self.commit_beside(self.own(VAULT), sealed, 0 if sealed is None else sealed.rows, split.leaving_ids)
        return unwritten

    def write_again(self, made: Pass, leaving: Mapping[str, Sequence[str]]) -> None:
        """Held records that are retried. Records that cannot be written stay where they are, so `ReadAgain` comes before the
        first commit, and the pass is undone. Rows of the files that are `leaving` a table leave it before."""
        counts = by_table(made.fates)
        found, misfits = self.all_tables_of(made, made.fates, self.paused(counts))
        if misfits.known:
            made.undo()
            raise ReadAgain(misfits.why, known=misfits.known)
        self.keep_verdicts(made.fates)
        leaving = {name: ids for name, ids in leaving.items() if self.is_there(name)}
        refused = self.not_to_write(made.fates, self.origins(counts.keys()))
        staged: dict[str, StagedTable] = {}
        for name, one in found.items():
            if not isinstance(one, StagedTable):
                self.failed(name, counts[name], one)
            elif name not in refused:
                staged[name] = dataclasses.replace(one, replaces=name in leaving)
        made.delete(file for name, files in made.written.files.items() if name not in staged for file in files)
        self.commit_tables(made.fates, staged, leaving)
        self.delete(file for one in staged.values() if one.replaces for file in one.files)

    # --- tables ---

    def commit_tables(
        self,
        fates: Sequence[Fate],
        staged: Mapping[str, StagedTable],
        leaving: Mapping[str, Sequence[str]],
    ) -> set[str]:
        """Returns the tables that failed. If rows of earlier files leave, the commit after that adds the new ones."""
        counts, wanted = by_table(fates), by_declaration(fates)
        declared = {name: self.service.tables[number] for number, tables in wanted.items() for name in tables}
        plain = [(self.destination(name, declared[name]), one) for name, one in staged.items() if not one.replaces]
        results = self.commit_all(plain, self.tables_at_once)
        for name, one in sorted(staged.items()):
            if one.replaces:
                results[name] = self.replaced(declared[name], name, leaving.get(name, ()), one)
        return {name for name, result in results.items() if self.failed(name, counts[name], result)}

    def removed(self, table: str, file_ids: Sequence[str]) -> AppendResult:
        """The rows of these files leave a table that gets none in their place."""
        destination = Destination(table, table_path(self.lake, table))
        try:
            self.logs.look(destination.path)
        except LogFailed as unreadable:
            if unreadable.lasts:
                return Failed(unreadable)
        return replace(self.spark, destination, file_ids, None, txn=self.txn, logs=self.logs)

    def replaced(self, declared: Table, table: str, file_ids: Sequence[str], staged: StagedTable) -> AppendResult:
        destination = Destination(table, table_path(self.lake, table))
        if not self.is_there(table):
            return written_anew(self.spark, self.destination(table, declared), staged, self.txn, self.logs, self.emit)

        def coming(seen: Seen | None) -> DataFrame:
            """The rows to add, as staged, or with the table's current columns."""
            if seen is None or next(misfits(staged.schema, seen.schema), None) is None:
                return staged.read(self.spark, destination.path)
            rules = rules_of(declared)
            return with_record_columns(staged.records(self.spark, destination.path, rules), seen.schema, rules)

        try:
            self.give_properties(self.logs.look(destination.path), declared.properties)
        except LogFailed as unreadable:
            if unreadable.lasts:
                return Failed(unreadable)
        return remove_then_append(
            self.spark,
            destination,
            file_ids,
            coming,
            expected=staged.rows,
            began_at=self.began_at,
            txn=self.txn,
            logs=self.logs,
            emit=self.emit,
        )

    def give_properties(self, seen: Seen | None, properties: Mapping[str, str]) -> None:
        """In a commit before the rows leave, so that a new change feed has these, too. Other writers may be quicker; then the
        next batch tries again."""
        for _ in range(ATTEMPTS):
            if seen is None or not self.logs.set_properties(seen, properties):
                return
            seen = self.logs.look(seen.path, again=True)

    def failed(self, table: str, wanted: int, result: AppendResult) -> bool:
        if isinstance(result, Failed) and not result.may_be_in and self.came_late(table):
            result = Skipped()
        if isinstance(result, Failed):
            if result.may_be_in:
                raise Halt(
                    f"{table}: it is unknown whether its commit arrived, so the batch will be repeated: {result.error}"
                )
            self.tell_failed(table, wanted, result)
            return True
        if isinstance(result, Skipped):
            self.must_have_come(table_path(self.lake, table), wanted)
        if isinstance(result, Appended):
            self.must_count(table, wanted, result)
            self.emit(
                RowsAppended(
                    **self.where,
                    table=table,
                    rows=result.rows,
                    rescued=result.rescued,
                    files=result.files,
                    bytes=result.bytes,
                    version=result.version,
                )
            )
            self.register(table)
        return False

    def came_late(self, table: str) -> bool:
        """Whether a commit arrived that an earlier driver sent before it died. An unreadable log counts as failed."""
        if self.late is None:
            return False
        self.late.wait_out(self.txn.version, f"table {table} could not be written")
        try:
            return self.logs.has(table_path(self.lake, table), self.txn, again=True)
        except LogFailed as unknown:
            if unknown.lasts:
                return False
            raise Halt(
                f"{table}: it is unknown whether its commit arrived, so the batch will be repeated: {unknown}"
            ) from unknown

    def register(self, table: str) -> None:
        """Registers a table in the catalog, if there is one. A table that cannot be read now is registered with the next
        rows."""
        if self.catalog is None:
            return
        try:
            seen = self.logs.look(table_path(self.lake, table))
        except LogFailed:
            return
        if seen is not None:
            self.catalog.keep(table, seen.path, seen.schema)

    # --- beside the tables ---

    def keep_verdicts(self, fates: Sequence[Fate]) -> None:
        if found := verdicts(self.service, fates):
            kept = [verdict.row(self.shared_beside) for verdict in found]
            self.write_beside(self.own(QUALITY), arrow_rows(kept, QUALITY_COLUMNS), len(kept))

    def commit_quarantine(
        self,
        plan: Plan,
        split: Sorted,
        unwritten: Mapping[str, str],
        late: Mapping[str, str],
        again: KeptOutAgain,
    ) -> None:
        """The rows and the whole files that are staged for it, and the rows of tables that failed at their commit."""
        stand = standing(split.leaving)
        refused = sum(end.outcome == "unreadable" for end in without_failed_replays(plan.ends, split))
        more = rows_of((fate for fate in arriving(plan.fates, late, stand) if fate.table in late), "write")
        wanted = quarantined_rows(arriving(plan.fates, unwritten, stand), unwritten)
        staged, table = plan.staged.beside.get(QUARANTINE), self.own(QUARANTINE)
        if more and not self.logs.has(table.path, self.txn):
            made = again(
                {name: KeptOut(why, self.causes.get(name, "")[:MOST_DETAIL] or None) for name, why in late.items()}
            )
            failed = self.kept_by(made, QUARANTINE, more, replaces=bool(split.leaving_quarantine))
            assert failed is not None
            staged = together([staged, failed])
        self.commit_beside(table, staged, wanted + refused, split.leaving_quarantine)

    def without(self, ids: StagedTable | None, failed: Collection[str]) -> StagedTable | None:
        """Ids of what was written, without those of tables that failed at their commit."""
        if ids is None or not failed:
            return ids
        rows = ids.read(self.spark, self.place_of(IDS))
        rows = rows.where(~rows["table"].isin(sorted(failed)))
        count = rows.count()
        return self.stage_beside(self.own(IDS), rows, count, replaces=ids.replaces) if count else None

    def remember(
        self,
        ids: StagedTable | None,
        unwritten: Mapping[str, str],
        fates: Sequence[Fate],
        dedupe: Dedupe,
        leaving: Sequence[Superseded] = (),
    ) -> None:
        """The ids of what was written; those of files that were replaced leave. Where a file is replayed, but its rows stay in
        a table that could not be written, their ids stay."""
        staying = Staying(standing(leaving).keys(), unwritten.keys())
        leave = [one.earlier.file.file_id for one in leaving]
        self.commit_beside(self.own(IDS), ids, 0 if ids is None else ids.rows, leave, staying)
        if self.txn.version % FORGET_EVERY == 0:
            dedupe.forget(self.day)
        dropped = by_table((fate for fate in fates if DUPLICATE in fate.violated), "drop")
        for table, count in dropped.items():
            self.emit(DuplicatesDropped(**self.where, table=table, rows=count))
