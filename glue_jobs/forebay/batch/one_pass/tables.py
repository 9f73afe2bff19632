"""The data files that one pass wrote, as the tables that a batch commits.

In: a `Pass`, with the ends of its files and the fates of their records. Out: `Staged`.
`ReadAgain` says why the pass cannot be used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.accounting import Fate, arriving
from forebay.batch.held import COLUMNS as HELD_COLUMNS
from forebay.batch.held import MOST_DETAIL, whole_files
from forebay.batch.one_pass.outcome import Pass, ReadAgain
from forebay.batch.one_pass.staging import fixed_columns_of
from forebay.batch.one_pass.told import KeptOut, Known
from forebay.batch.plan import Staged
from forebay.batch.reasons import PAUSED_TABLE, TABLE_FAILED
from forebay.batch.staging import Staging, by_declaration, by_table, parked_rows, quarantined_rows
from forebay.content.end import FileEnd
from forebay.counted import counted
from forebay.declaration.table import Table
from forebay.lake.layout import IDS, PARKED, QUARANTINE, VAULT
from forebay.ledger.versions import Sorted, standing
from forebay.privacy.vault import COLUMNS as VAULT_COLUMNS
from forebay.table.data_files.in_arrow import columns_of_ddl
from forebay.table.destination import Destination, Failed, Skipped
from forebay.table.staged import StagedTable
from forebay.table.staging import FilesDoNotFit, StagingFromTasks

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass
class Misfits:
    """Tables whose data files do not fit them, as a pass must know them, and why."""

    why: str = ""
    known: dict[str, Known] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PassStaging(Staging):
    """The staging of one batch."""

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
        leaving = self.leaving(split.leaving)
        if kept_out is None:
            kept_out = {name: KeptOut(reason) for name, reason in self.not_to_write(fates, leaving.keys()).items()}
            if any(why.reason != PAUSED_TABLE for why in kept_out.values()):
                raise ReadAgain(_named(kept_out), tables=kept_out)
        unwritten = {name: why.reason for name, why in kept_out.items()}
        counts = by_table(by_declaration(fates))
        tables: dict[str, StagedTable] = {}
        failed = dict[str, KeptOut]()
        found, misfits = self.all_tables_of(made, fates, unwritten)
        for name, staged in found.items():
            if isinstance(staged, Failed):
                failed[name] = KeptOut(TABLE_FAILED, self.failed_before(name, counts[name], staged)[:MOST_DETAIL])
            elif isinstance(staged, StagedTable):
                tables[name] = dataclasses.replace(staged, replaces=name in leaving)
        if failed or misfits.known:
            out = {**kept_out, **failed}
            raise ReadAgain(misfits.why or _named(out), tables=out, known=misfits.known)
        beside = {
            QUARANTINE: self.quarantined_by(made, ends, fates, unwritten, split),
            PARKED: self.kept_by(made, PARKED, parked_rows(fates), replaces=bool(split.leaving_parked)),
            IDS: self.ids_of(made, replaces=bool(split.leaving)),
            VAULT: self.kept_by(made, VAULT, made.rows_for_vault, replaces=bool(split.leaving)),
        }
        return Staged(unwritten, tables, {name: one for name, one in beside.items() if one is not None})

    def all_tables_of(
        self, made: Pass, fates: Sequence[Fate], unwritten: Collection[str]
    ) -> tuple[dict[str, StagedTable | Skipped | Failed], Misfits]:
        """The tables that are written. Some may have data files that do not fit them."""
        staged: dict[str, StagedTable | Skipped | Failed] = {}
        misfits = Misfits()
        for declared, wanted in by_declaration(fates).items():
            asked = {table: count for table, count in wanted.items() if table not in unwritten}
            try:
                staged |= self.tables_of(made, self.service.tables[declared], asked)
            except FilesDoNotFit as other:
                misfits.why = str(other)
                misfits.known |= {name: Known(declared, place) for name, place in other.places.items()}
        return staged, misfits

    def tables_of(
        self, made: Pass, declared: Table, wanted: Mapping[str, int]
    ) -> dict[str, StagedTable | Skipped | Failed]:
        """The tables of one declaration whose data files the pass wrote."""
        places = [self.destination(name, declared) for name in sorted(wanted)]
        return self.from_tasks(made, fixed_columns_of(declared), wanted).run(places, self.tables_at_once)

    def from_tasks(self, made: Pass, columns: StructType, wanted: Mapping[str, int]) -> StagingFromTasks:
        return StagingFromTasks(self.spark, self.logs, columns, self.txn, self.emit, wanted, made.written)

    def ids_of(self, made: Pass, *, replaces: bool, without: Collection[str] = ()) -> StagedTable | None:
        """The ids of the written rows, for later batches: `without` those of some tables."""
        staged: StagedTable | None = None
        for rows in made.ids:
            rows = self.without_tables(rows, without)
            if not rows.num_rows:
                continue
            more = self.stage_beside(self.own(IDS), rows, rows.num_rows, replaces=replaces)
            staged = more if staged is None or more is None else staged.with_files(more)
        return staged

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
        whole = whole_files(files, {**self.shared, "at": self.began_at})
        staged = self.stage_beside(self.own(QUARANTINE), whole, len(files), replaces=replaces)
        return staged if records is None or staged is None else staged.with_files(records)

    def kept_by(self, made: Pass, name: str, count: int, *, replaces: bool) -> StagedTable | None:
        """Records beside the tables; None where there are none, or where the place has this batch already."""
        columns = VAULT_COLUMNS if name == VAULT else HELD_COLUMNS
        return self.beside_of(made, self.own(name), columns, count, replaces=replaces) if count else None

    def beside_of(
        self, made: Pass, table: Destination, columns: str, count: int, *, replaces: bool
    ) -> StagedTable | None:
        staged = self.from_tasks(made, columns_of_ddl(columns), {table.name: count}).run([table], 1)[table.name]
        if isinstance(staged, Failed):
            raise self.stays_open(table, staged)
        return None if isinstance(staged, Skipped) else dataclasses.replace(staged, replaces=replaces)


def _named(tables: Mapping[str, KeptOut]) -> str:
    return f"{counted(len(tables), 'table', 'is')} not written, such as {min(tables)}"
