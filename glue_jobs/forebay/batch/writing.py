"""The rows of a batch on their way into tables: one job for the files of all tables of a declaration, one commit a table.

In: rows with fates, and their counts. Out: which tables were not written, and why; their rows are in the quarantine then.
Rows are counted before they are committed, and again by what Delta says of the commit; a table that has the batch already is
counted by its commit. Other numbers than the plan's halt everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forebay.batch.accounting import Fate
from forebay.batch.columns import rules_of
from forebay.batch.commits import Commits, is_small
from forebay.batch.declared_columns import with_table_columns
from forebay.batch.dedupe import DUPLICATE, Dedupe
from forebay.batch.events import (
    DuplicatesDropped,
    ExpectationFailed,
    ExpectationViolated,
    NewTablesRefused,
    RowsAppended,
    TableFailed,
)
from forebay.batch.expectations import COLUMNS as QUALITY_COLUMNS
from forebay.batch.expectations import verdicts
from forebay.batch.late_commits import LateCommits
from forebay.batch.new_tables import NewTables
from forebay.batch.reasons import DERIVED_TABLE, EXPECTATION_FAILED, PAUSED_TABLE, TABLE_FAILED, TOO_MANY_NEW_TABLES
from forebay.batch.vaulted import vault_rows
from forebay.content.end import FileEnd
from forebay.declaration.table import Table
from forebay.errors import Halt
from forebay.lake.layout import table_path
from forebay.landed_file import LandedFile
from forebay.ledger.versions import Superseded, standing
from forebay.privacy.vault import values_of
from forebay.table.catalog import Catalog
from forebay.table.commit import LogFailed
from forebay.table.destination import Appended, AppendResult, Destination, Failed, Skipped
from forebay.table.fan_out import append
from forebay.table.from_records import with_record_columns
from forebay.table.in_arrow import arrow_rows
from forebay.table.kernel import Seen
from forebay.table.replace import Staying, replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Writing"]

FORGET_EVERY = 50
"""Batches, after which ids that no window reaches are removed."""


@dataclass(frozen=True, kw_only=True)
class Writing(Commits):
    """The writing of one batch; run again, it does what is left to do."""

    new_tables: NewTables
    tables_at_once: int
    catalog: Catalog | None = None
    late: LateCommits | None = None
    """Where another driver began this batch."""

    def write(
        self,
        landing: DataFrame | None,
        ends: Sequence[FileEnd],
        fates: Sequence[Fate],
        superseded: Sequence[Superseded] = (),
        released: Sequence[LandedFile] = (),
        dedupe: Dedupe | None = None,
        vaulted: int = 0,
    ) -> dict[str, str]:
        """Tables first, then held records, which include the rows of tables that were not written. Returns those,
        with the reason of each. `landing` are the rows of files that land; None where none does. `released` are files that
        leave the quarantine. So many rows are `vaulted`."""
        names = {fate.table for fate in fates if fate.fate == "write" and fate.table is not None}
        leaving = self.leaving(superseded)
        unwritten = self.unwritten_before() if names else {}
        unwritten |= dict.fromkeys(self.paused(names | leaving.keys()) - unwritten.keys(), PAUSED_TABLE)
        unwritten |= dict.fromkeys(self.derived(names | leaving.keys()) - unwritten.keys(), DERIVED_TABLE)
        unwritten |= dict.fromkeys(self.too_new(names - unwritten.keys()), TOO_MANY_NEW_TABLES)
        unwritten |= dict.fromkeys(self.unfit(fates) & names - unwritten.keys(), EXPECTATION_FAILED)
        for declared, tables in self.by_declaration(fates).items():
            wanted = {table: rows for table, rows in tables.items() if table not in unwritten}
            failed = self.write_tables(landing, self.service.tables[declared], wanted, leaving)
            unwritten |= dict.fromkeys(failed, TABLE_FAILED)
        for table in sorted(leaving.keys() - names - unwritten.keys()):
            if self.failed(table, 0, self.replaced(None, table, leaving[table], None)):
                unwritten[table] = TABLE_FAILED
        self.write_held(landing, ends, unwritten, fates, superseded, released)
        if dedupe is not None and dedupe.wanted:
            self.remember(landing, unwritten, fates, dedupe, superseded)
        if self.service.privacy is not None and self.service.privacy.vault:
            self.fill_vault(self.service.privacy.vault, landing, vaulted, ends, superseded)
        return unwritten

    def fill_vault(
        self, vault: str, rows: DataFrame | None, count: int, ends: Sequence[FileEnd], superseded: Sequence[Superseded]
    ) -> None:
        """Last of all: where the vault has this batch, everything else has it, so what stands is told by the others alone."""
        table = Destination("vault", values_of(vault), ("day",))
        leaving = [earlier.earlier.file.file_id for earlier in superseded]
        kept = vault_rows(rows, {**self.shared, "at": self.began_at}) if rows is not None and count else None
        if kept is not None and not leaving and is_small(ends):
            self.write_beside(table, kept.toArrow(), count)
        elif count or leaving:
            self.write_beside(table, kept, count, leaving)

    def remember(
        self,
        rows: DataFrame | None,
        unwritten: Mapping[str, str],
        fates: Sequence[Fate],
        dedupe: Dedupe,
        superseded: Sequence[Superseded] = (),
    ) -> None:
        """The ids of what was written, for the batches to come; those of files that were replaced leave. Where a file is
        replayed, but its rows stay in a table that could not be written, their ids stay."""
        leaving = [earlier.earlier.file.file_id for earlier in superseded]
        staying = Staying(standing(superseded).keys(), unwritten.keys())
        written = [fate for fate in fates if fate.fate == "write"]
        stood = ((f.table, f.declared) for f in written if f.file_id in dedupe.unread)
        standing_in = {table: declared for table, declared in stood if table is not None and declared is not None}
        ids = dedupe.ids(rows, unwritten, standing_in, {f.file_id for f in written if f.table in standing_in})
        count = 0 if ids is None else ids.count()
        if count or leaving:
            self.write_own("ids", ids if count else None, count, leaving, staying)
        if self.txn.version % FORGET_EVERY == 0:
            dedupe.forget(self.began_at.date())
        dropped: dict[str, int] = {}
        for fate in fates:
            if DUPLICATE in fate.violated and fate.table is not None:
                dropped[fate.table] = dropped.get(fate.table, 0) + fate.rows
        for table, count in sorted(dropped.items()):
            self.emit(DuplicatesDropped(service=self.service.name, table=table, batch=self.txn.version, rows=count))

    def write_again(self, rows: DataFrame, fates: Sequence[Fate], leaving: Mapping[str, Sequence[str]]) -> None:
        """Held records that are retried. What cannot be written stays where it is. Rows of the files that are `leaving` a table
        leave it in the same commit."""
        names = {fate.table for fate in fates if fate.fate == "write" and fate.table is not None}
        paused = self.paused(names) | self.derived(names)
        refused = paused | self.too_new(names - paused) | self.unfit(fates)
        leaving = {name: ids for name, ids in leaving.items() if self.is_there(name)}
        for declared, tables in self.by_declaration(fates).items():
            wanted = {table: rows for table, rows in tables.items() if table not in refused}
            self.write_tables(rows, self.service.tables[declared], wanted, leaving)

    def leaving(self, superseded: Sequence[Superseded]) -> dict[str, list[str]]:
        """The files whose rows are to leave, by table; a table that is gone has none."""
        files: dict[str, list[str]] = {}
        for earlier in superseded:
            for table in earlier.tables:
                files.setdefault(table, []).append(earlier.earlier.file.file_id)
        return {name: ids for name, ids in files.items() if self.is_there(name)}

    def paused(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset(name for name in names if self.service.is_paused(name))

    def derived(self, names: Iterable[str]) -> frozenset[str]:
        """Tables that a merge or a rollup computes: its next commit would take appended rows for its own."""

        def origin(table: str) -> str:
            try:
                seen = self.logs.look(table_path(self.lake, table))
            except LogFailed:
                return ""
            return seen.derived_from if seen else ""

        return frozenset(name for name in names if origin(name))

    def is_there(self, table: str) -> bool:
        """A table whose log cannot be read is there: what is wrong with it is found out when it is written, and ends there."""
        try:
            return self.logs.look(table_path(self.lake, table)) is not None
        except LogFailed:
            return True

    def too_new(self, names: set[str]) -> frozenset[str]:
        """Tables that do not exist, and may not come into being today."""
        new = [name for name in names if not self.is_there(name)]
        refused = self.new_tables.refuse(new, self.began_at.date(), self.service.new_tables_per_day)
        if refused:
            such_as = ", ".join(sorted(refused)[:5])
            where: dict[str, Any] = {"service": self.service.name, "batch": self.txn.version}
            self.emit(NewTablesRefused(**where, tables=len(refused), such_as=such_as))
        return refused

    def unfit(self, fates: Sequence[Fate]) -> frozenset[str]:
        """Tables of which too many rows violate an expectation. The verdicts are kept in `_forebay/quality`. A table that
        has the batch already is no longer refused, even if some of its files are gone now and the share is another."""
        found = verdicts(self.service, fates)
        where: dict[str, Any] = {"service": self.service.name, "batch": self.txn.version}
        for verdict in found:
            if verdict.violated:
                told: dict[str, Any] = {
                    "table": verdict.table,
                    "expectation": verdict.expectation,
                    "rows": verdict.violated,
                }
                self.emit((ExpectationFailed if verdict.failed else ExpectationViolated)(**where, **told))
        if found:
            kept = [verdict.row(at=self.began_at, **self.shared) for verdict in found]
            self.write_own("quality", arrow_rows(kept, QUALITY_COLUMNS), len(kept))
        failed = {verdict.table for verdict in found if verdict.failed}
        has = self.logs.has
        return frozenset(name for name in failed if not has(table_path(self.lake, name), self.txn, again=True))

    @staticmethod
    def by_declaration(fates: Sequence[Fate]) -> dict[int, dict[str, int]]:
        """Rows per table, grouped by declaration: the tables of one share their columns, so one job writes them all. Where two
        declarations made the same name, the first one's columns hold: a table takes one commit a batch."""
        rows: dict[str, int] = {}
        first: dict[str, int] = {}
        for fate in fates:
            if fate.fate == "write" and fate.table is not None and fate.declared is not None:
                rows[fate.table] = rows.get(fate.table, 0) + fate.rows
                first[fate.table] = min(fate.declared, first.get(fate.table, fate.declared))
        grouped: dict[int, dict[str, int]] = {}
        for table, declared in sorted(first.items()):
            grouped.setdefault(declared, {})[table] = rows[table]
        return grouped

    def write_tables(
        self, rows: DataFrame | None, declared: Table, wanted: dict[str, int], leaving: Mapping[str, Sequence[str]]
    ) -> frozenset[str]:
        """Those that could not be written. Where rows of earlier files leave, new ones come in the same commit."""
        if not wanted or rows is None:
            return frozenset()
        from pyspark.sql import functions as F

        chosen = self.chosen(rows, declared, wanted)
        plain = sorted(wanted.keys() - leaving.keys())
        results: dict[str, AppendResult] = {}
        if plain:
            results = append(
                self.spark,
                chosen.where(F.col("_table").isin(plain)) if len(plain) < len(wanted) else chosen,
                [self.destination(name, declared) for name in plain],
                txn=self.txn,
                pool=self.tables_at_once,
                logs=self.logs,
                emit=self.emit,
                expected=wanted,
            )
        for name in sorted(wanted.keys() & leaving.keys()):
            its_rows = chosen.where(F.col("_table") == name).drop("_table")
            if name not in self.done([name]):
                self.must_be_there(name, wanted[name], its_rows)
            results[name] = self.replaced(declared, name, leaving[name], its_rows)
        return frozenset(name for name, result in results.items() if self.failed(name, wanted[name], result))

    def destination(self, table: str, declared: Table) -> Destination:
        return Destination(
            table,
            table_path(self.lake, table),
            declared.partitions,
            declared.properties,
            rules=rules_of(declared),
            cluster_columns=declared.cluster_by,
            salt=declared.salt,
            type_widening=declared.type_widening,
        )

    def chosen(self, rows: DataFrame, declared: Table, tables: Iterable[str]) -> DataFrame:
        """The rows of these tables with the columns of their declaration, and what their other columns are made of."""
        from pyspark.sql import functions as F

        chosen = rows.where((F.col("_fate") == "write") & F.col("_table").isin(sorted(tables)))
        return with_table_columns(chosen, self.service, declared, batch=self.txn.version, at=self.began_at)

    def replaced(
        self, declared: Table | None, table: str, file_ids: Sequence[str], rows: DataFrame | None
    ) -> AppendResult:
        def shaped(seen: Seen | None) -> DataFrame:
            assert rows is not None
            return with_record_columns(rows, seen.schema if seen else None, rules_of(declared)) if declared else rows

        destination, coming = Destination(table, table_path(self.lake, table)), None if rows is None else shaped
        try:
            self.logs.look(destination.path)
        except LogFailed as unreadable:
            if unreadable.lasts:
                return Failed(unreadable)
        return replace(self.spark, destination, file_ids, coming, txn=self.txn, logs=self.logs)

    def failed(self, table: str, wanted: int, result: AppendResult) -> bool:
        where: dict[str, Any] = {"service": self.service.name, "table": table, "batch": self.txn.version}
        if isinstance(result, Failed) and not result.may_be_in and self.came_late(table):
            result = Skipped()
        if isinstance(result, Failed):
            if result.may_be_in:
                raise Halt(
                    f"{table}: it is unknown whether its commit arrived, so the batch is repeated: {result.error}"
                )
            self.causes[table] = str(result.error)
            self.emit(TableFailed(**where, rows=wanted, error=self.causes[table]))
            return True
        if isinstance(result, Skipped):
            self.must_have_come(table_path(self.lake, table), wanted)
        if isinstance(result, Appended):
            self.must_count(table, wanted, result)
            counts: dict[str, Any] = {"rows": result.rows, "rescued": result.rescued}
            counts |= {"files": result.files, "bytes": result.bytes}
            self.emit(RowsAppended(**where, **counts, version=result.version))
            self.register(table)
        return False

    def came_late(self, table: str) -> bool:
        """Whether a commit arrived that an earlier driver sent before it died. What nobody can read is told as it failed."""
        if self.late is None:
            return False
        self.late.wait_out(self.txn.version, f"table {table} could not be written")
        try:
            return self.logs.has(table_path(self.lake, table), self.txn, again=True)
        except LogFailed as unknown:
            if unknown.lasts:
                return False
            raise Halt(
                f"{table}: it is unknown whether its commit arrived, so the batch is repeated: {unknown}"
            ) from unknown

    def register(self, table: str) -> None:
        """In the catalog, if there is one. What cannot be read now is registered with the next rows."""
        if self.catalog is None:
            return
        try:
            seen = self.logs.look(table_path(self.lake, table))
        except LogFailed:
            return
        if seen is not None:
            self.catalog.keep(table, seen.path, seen.schema)
