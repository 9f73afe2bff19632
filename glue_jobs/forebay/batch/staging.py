"""The data files of a batch or a retry, as the tables that it commits; and the tables that are not written, and why.

In: a `Pass`, with the ends of its files and the fates of their records. Out: `Staged`, or `ReadAgain`, which says why the pass
cannot be used. Not written are tables that are paused, derived, one new table too many, or have too many rows that violate an
expectation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.accounting import Fate, arriving, by_declaration, by_table, quarantined_rows, rows_of
from forebay.batch.commits import Commits
from forebay.batch.events import ExpectationFailed, ExpectationViolated, NewTablesRefused, TableFailed
from forebay.batch.expectations import verdicts
from forebay.batch.new_tables import NewTables
from forebay.batch.one_pass.driver import fixed_columns_of
from forebay.batch.one_pass.held import COLUMNS as HELD_COLUMNS
from forebay.batch.one_pass.held import MOST_DETAIL, whole_files
from forebay.batch.one_pass.outcome import Pass, ReadAgain
from forebay.batch.one_pass.spec import KeptOut, Known
from forebay.batch.plan import Staged
from forebay.batch.reasons import DERIVED_TABLE, EXPECTATION_FAILED, PAUSED_TABLE, TABLE_FAILED, TOO_MANY_NEW_TABLES
from forebay.content.end import FileEnd
from forebay.counted import counted
from forebay.declaration.table import Table
from forebay.declared_sql.columns import rules_of
from forebay.errors import Halt
from forebay.lake.layout import IDS, PARKED, QUARANTINE, VAULT, table_path
from forebay.lake.objects import open_objects
from forebay.ledger.versions import Sorted, standing
from forebay.privacy.vault import COLUMNS as VAULT_COLUMNS
from forebay.table.commit import LogFailed
from forebay.table.data_files.in_arrow import columns_of_ddl
from forebay.table.destination import Destination, Failed, Skipped
from forebay.table.staged import StagedTable, together
from forebay.table.staging import FilesDoNotFit, StagingFromTasks
from forebay.threads import answers_by, in_threads

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass
class Misfits:
    """Tables whose data files do not fit them, as a pass must know them, and why."""

    why: str = ""
    known: dict[str, Known] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Staging(Commits):
    """The staging of one batch."""

    new_tables: NewTables
    tables_at_once: int

    def stage(
        self,
        made: Pass,
        ends: Sequence[FileEnd],
        fates: Sequence[Fate],
        split: Sorted,
        kept_out: Mapping[str, KeptOut] | None,
    ) -> Staged:
        """The pass knew of the tables that are `kept_out`; `ReadAgain` where there are others. Nothing of a table that has the
        batch already."""
        leaving, counts = self.leaving_tables(split), by_table(fates)
        absent = frozenset[str]()
        if kept_out is None:
            origins = self.origins(counts.keys() | leaving.keys())
            absent = frozenset(name for name, origin in origins.items() if origin is None)
            kept_out = {name: KeptOut(reason) for name, reason in self.not_to_write(fates, origins).items()}
            if any(why.reason != PAUSED_TABLE for why in kept_out.values()):
                raise ReadAgain(_named(kept_out), tables=kept_out)
        unwritten = {name: why.reason for name, why in kept_out.items()}
        tables: dict[str, StagedTable] = {}
        failed = dict[str, KeptOut]()
        found, misfits = self.all_tables_of(made, fates, unwritten, absent)
        for name, staged in found.items():
            if isinstance(staged, Failed):
                failed[name] = KeptOut(TABLE_FAILED, self.tell_failed(name, counts[name], staged)[:MOST_DETAIL])
            elif isinstance(staged, StagedTable):
                tables[name] = dataclasses.replace(staged, replaces=name in leaving)
        if failed or misfits.known:
            out = {**kept_out, **failed}
            raise ReadAgain(misfits.why or _named(out), tables=out, known=misfits.known)
        beside = {
            QUARANTINE: self.quarantined_by(made, ends, fates, unwritten, split),
            PARKED: self.kept_by(made, PARKED, rows_of(fates, "park"), replaces=bool(split.leaving_parked)),
            IDS: self.ids_of(made, replaces=bool(split.leaving)),
            VAULT: self.kept_by(made, VAULT, made.rows_for_vault, replaces=bool(split.leaving)),
        }
        return Staged(unwritten, tables, {name: one for name, one in beside.items() if one is not None})

    def all_tables_of(
        self, made: Pass, fates: Sequence[Fate], unwritten: Collection[str], absent: Collection[str] = ()
    ) -> tuple[dict[str, StagedTable | Skipped | Failed], Misfits]:
        """The tables that are written. Some may have data files that do not fit them. Nobody looks again for those that were
        `absent` just now: if somebody creates one meanwhile, its commit finds it."""
        staged: dict[str, StagedTable | Skipped | Failed] = {}
        misfits = Misfits()
        for declared, wanted in by_declaration(fates).items():
            asked = {table: count for table, count in wanted.items() if table not in unwritten}
            try:
                staged |= self.tables_of(made, self.service.tables[declared], asked, absent)
            except FilesDoNotFit as other:
                misfits.why = str(other)
                misfits.known |= {name: Known(declared, place) for name, place in other.places.items()}
        return staged, misfits

    def tables_of(
        self, made: Pass, declared: Table, wanted: Mapping[str, int], absent: Collection[str]
    ) -> dict[str, StagedTable | Skipped | Failed]:
        """The tables of one declaration whose data files the pass wrote."""
        places = [self.destination(name, declared) for name in sorted(wanted)]
        return self.from_tasks(made, fixed_columns_of(declared), wanted, absent).run(places, self.tables_at_once)

    def from_tasks(
        self, made: Pass, columns: StructType, wanted: Mapping[str, int], absent: Collection[str] = ()
    ) -> StagingFromTasks:
        return StagingFromTasks(self.spark, self.logs, columns, self.txn, self.emit, wanted, made.written, absent)

    def ids_of(self, made: Pass, *, replaces: bool, without: Collection[str] = ()) -> StagedTable | None:
        """The ids of the written rows, for later batches: `without` those of some tables."""
        stay = (self.without_tables(rows, without) for rows in made.ids)
        return together(
            self.stage_beside(self.own(IDS), rows, rows.num_rows, replaces=replaces) for rows in stay if rows.num_rows
        )

    def without_tables(self, ids: pa.Table, names: Collection[str]) -> pa.Table:
        return ids.filter(pc.invert(pc.is_in(ids["table"], value_set=pa.array(sorted(names), pa.string()))))

    def quarantined_by(
        self,
        made: Pass,
        ends: Sequence[FileEnd],
        fates: Sequence[Fate],
        unwritten: Mapping[str, str],
        split: Sorted,
    ) -> StagedTable | None:
        """The records that the pass wrote there, and whole files."""
        replaces = bool(split.leaving_quarantine)
        coming = arriving(fates, unwritten, standing(split.leaving))
        records = self.kept_by(made, QUARANTINE, quarantined_rows(coming, unwritten), replaces=replaces)
        files = [end for end in ends if end.outcome == "unreadable"]
        if not files:
            return records
        whole = whole_files(files, self.shared_beside)
        staged = self.stage_beside(self.own(QUARANTINE), whole, len(files), replaces=replaces)
        return together([staged, records])

    def kept_by(self, made: Pass, name: str, count: int, *, replaces: bool) -> StagedTable | None:
        """Records beside the tables; None where there are none, or where the place has this batch already."""
        if not count:
            return None
        table, columns = self.own(name), VAULT_COLUMNS if name == VAULT else HELD_COLUMNS
        return self.beside(table, self.from_tasks(made, columns_of_ddl(columns), {name: count}), replaces=replaces)

    def tell_failed(self, table: str, rows: int, failed: Failed) -> str:
        """Tells that a table cannot be written, and why."""
        cause = self.causes[table] = str(failed.error)
        self.emit(TableFailed(**self.where, table=table, rows=rows, error=cause))
        return cause

    def must_have_files(self, staged: Iterable[StagedTable], plan: str) -> None:
        """A VACUUM of another tool, or whoever dropped a table, may have deleted files that no log names yet. A commit of them
        would leave a table that nobody can read. Several tables are asked at a time: each takes some round trips to S3."""

        def gone_of(one: StagedTable) -> list[str]:
            path = self.place_of(one.name)
            folder = open_objects(path)
            names = [] if self.is_in(path) else [file.path for file in one.files]
            return [
                f"{folder.place}/{name}" for name in names if name not in {found.name for found in folder.found(name)}
            ]

        gone = [name for names in in_threads(gone_of, staged, self.tables_at_once) for name in names]
        if gone:
            lacks = f"and lacks {counted(len(gone), 'data file')}, such as {gone[0]}"
            raise Halt(
                f"batch {self.txn.version} is not in all of its tables yet, {lacks}: somebody deleted files that no log names. "
                f"Nothing was marked as done. Restore the data files of {plan} from the versions of their bucket, then start "
                "again. See docs/disasters.md, A plan"
            )

    # --- the tables that are not written ---

    def not_to_write(self, fates: Sequence[Fate], origins: Mapping[str, str | None]) -> dict[str, str]:
        """Those of the tables with `origins` that are paused, derived, too many for a day, or have too many rows that violate
        an expectation."""
        names = by_table(fates).keys()
        unwritten = dict.fromkeys(self.paused(origins), PAUSED_TABLE)
        unwritten |= dict.fromkeys({name for name in origins if origins[name]} - unwritten.keys(), DERIVED_TABLE)
        new = [name for name in names - unwritten.keys() if origins[name] is None]
        unwritten |= dict.fromkeys(self.too_many(new), TOO_MANY_NEW_TABLES)
        return unwritten | dict.fromkeys(self.unfit(fates) & names - unwritten.keys(), EXPECTATION_FAILED)

    def paused(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset(name for name in names if self.service.is_paused(name))

    def origins(self, names: Collection[str]) -> dict[str, str | None]:
        """The tables that a merge or a rollup computes each from: its next commit would take appended rows for its own. Nothing
        for other tables, and for one whose log cannot be read; None where there is no table. An answer takes some round trips
        to S3, so several threads ask."""

        def origin(table: str) -> str | None:
            try:
                seen = self.logs.look(table_path(self.lake, table))
            except LogFailed:
                return ""
            return None if seen is None else seen.derived_from

        return answers_by(origin, names, self.tables_at_once)

    def too_many(self, new: Collection[str]) -> frozenset[str]:
        """The new tables that the day's limit does not allow."""
        refused = self.new_tables.refuse(new, self.day, self.service.new_tables_per_day)
        if refused:
            such_as = ", ".join(sorted(refused)[:5])
            self.emit(NewTablesRefused(**self.where, tables=len(refused), such_as=such_as))
        return refused

    def unfit(self, fates: Sequence[Fate]) -> frozenset[str]:
        """Tables with too many rows that violate an expectation."""
        failed = set()
        for verdict in verdicts(self.service, fates):
            facts = {**self.where, "table": verdict.table, "expectation": verdict.expectation, "rows": verdict.violated}
            if verdict.failed:
                self.emit(ExpectationFailed(**facts))
                failed.add(verdict.table)
            elif verdict.violated:
                self.emit(ExpectationViolated(**facts, rings=verdict.rings))
        return frozenset(failed)

    def leaving_tables(self, split: Sorted) -> dict[str, list[str]]:
        """The files whose rows leave, by table; a table that is gone has none."""
        files: dict[str, list[str]] = {}
        for one in split.leaving:
            for table in one.tables:
                files.setdefault(table, []).append(one.earlier.file.file_id)
        return {name: ids for name, ids in files.items() if self.is_there(name)}

    def is_there(self, table: str) -> bool:
        """A table whose log cannot be read is there. Writing it fails then, and fails that table alone."""
        try:
            return self.logs.look(table_path(self.lake, table)) is not None
        except LogFailed:
            return True

    def destination(self, table: str, declared: Table) -> Destination:
        return Destination(
            table,
            table_path(self.lake, table),
            declared.partitions,
            declared.properties,
            rules=rules_of(declared),
            cluster_columns=declared.cluster_by,
            type_widening=declared.type_widening,
        )


def _named(tables: Mapping[str, KeptOut]) -> str:
    return f"{counted(len(tables), 'table', 'is')} not written, such as {min(tables)}"
