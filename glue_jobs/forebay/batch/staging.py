"""The tables of a batch or a retry that are not written, and why.

In: counted fates. Out: the reason for each table that is paused, derived, one new table too many, or has too many rows that
violate an expectation; the tables that rows leave. (`one_pass.tables` has their data files; here they are looked for again
before a plan is carried out.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forebay.batch.accounting import Fate
from forebay.batch.commits import Commits
from forebay.batch.events import ExpectationFailed, ExpectationViolated, NewTablesRefused, TableFailed
from forebay.batch.expectations import verdicts
from forebay.batch.new_tables import NewTables
from forebay.batch.reasons import DERIVED_TABLE, EXPECTATION_FAILED, PAUSED_TABLE, TOO_MANY_NEW_TABLES
from forebay.counted import counted
from forebay.declaration.table import Table
from forebay.declared_sql.columns import rules_of
from forebay.errors import Halt
from forebay.lake.layout import table_path
from forebay.lake.objects import open_objects
from forebay.ledger.versions import Superseded
from forebay.table.commit import LogFailed
from forebay.table.destination import Destination, Failed
from forebay.table.staged import StagedTable
from forebay.threads import answers_by, in_threads


@dataclass(frozen=True, kw_only=True)
class Staging(Commits):
    """The staging of one batch."""

    new_tables: NewTables
    tables_at_once: int

    def failed_before(self, table: str, rows: int, failed: Failed) -> str:
        """Tells that a table cannot be written, and why, before anything of the batch is committed."""
        cause = self.causes[table] = str(failed.error)
        self.emit(TableFailed(service=self.service.name, table=table, batch=self.txn.version, rows=rows, error=cause))
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

    def not_to_write(self, fates: Sequence[Fate], leaving: Collection[str]) -> dict[str, str]:
        """Tables that are paused, derived, too many for a day, or have too many rows that violate an expectation."""
        names = {fate.table for fate in fates if fate.fate == "write" and fate.table is not None}
        origins = self.origins(names | {*leaving})
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
        refused = self.new_tables.refuse(new, self.began_at.date(), self.service.new_tables_per_day)
        if refused:
            such_as = ", ".join(sorted(refused)[:5])
            where: dict[str, Any] = {"service": self.service.name, "batch": self.txn.version}
            self.emit(NewTablesRefused(**where, tables=len(refused), such_as=such_as))
        return refused

    def unfit(self, fates: Sequence[Fate]) -> frozenset[str]:
        """Tables with too many rows that violate an expectation."""
        where: dict[str, Any] = {"service": self.service.name, "batch": self.txn.version}
        failed = set()
        for verdict in verdicts(self.service, fates):
            told = {**where, "table": verdict.table, "expectation": verdict.expectation, "rows": verdict.violated}
            if verdict.failed:
                self.emit(ExpectationFailed(**told))
                failed.add(verdict.table)
            elif verdict.violated:
                self.emit(ExpectationViolated(**told, rings=verdict.rings))
        return frozenset(failed)

    def leaving(self, superseded: Sequence[Superseded]) -> dict[str, list[str]]:
        """The files whose rows leave, by table; a table that is gone has none."""
        files: dict[str, list[str]] = {}
        for earlier in superseded:
            for table in earlier.tables:
                files.setdefault(table, []).append(earlier.earlier.file.file_id)
        return {name: ids for name, ids in files.items() if self.is_there(name)}

    def is_there(self, table: str) -> bool:
        """A table whose log cannot be read is there. Writing it fails then, and fails that table alone."""
        try:
            return self.logs.look(table_path(self.lake, table)) is not None
        except LogFailed:
            return True

    # --- the files ---

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


def quarantined_rows(fates: Iterable[Fate], unwritten: Collection[str]) -> int:
    """The quarantined rows, including those of tables that are not written."""
    return sum(f.rows for f in fates if f.fate == "quarantine" or (f.fate == "write" and f.table in unwritten))


def parked_rows(fates: Iterable[Fate]) -> int:
    return sum(fate.rows for fate in fates if fate.fate == "park")


def by_declaration(fates: Iterable[Fate]) -> dict[int, dict[str, int]]:
    """Rows per table, grouped by declaration: the tables of one share their columns, so one job writes them all. One
    declaration owns each table (`record.route`)."""
    grouped: dict[int, dict[str, int]] = {}
    for fate in sorted(fates, key=lambda fate: fate.table or ""):
        if fate.fate == "write" and fate.table is not None and fate.declared is not None:
            rows = grouped.setdefault(fate.declared, {})
            rows[fate.table] = rows.get(fate.table, 0) + fate.rows
    return grouped


def by_table(grouped: Mapping[int, Mapping[str, int]]) -> dict[str, int]:
    """The same rows without their declarations."""
    return {name: rows for tables in grouped.values() for name, rows in tables.items()}
