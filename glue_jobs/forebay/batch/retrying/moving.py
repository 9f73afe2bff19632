"""Held records on their way: into tables, the ledger, and out of where they were held.

In: the plan of a retry, and the `Chosen` records. Out: `Retried`. Each step is a commit with the plan's number, so no step is
repeated, however often the driver is killed. The last step removes a record from where it was held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forebay.batch.accounting import Fate, by_table, rows_of
from forebay.batch.dedupe import Dedupe
from forebay.batch.ledger_change import Change, change_counts
from forebay.batch.leftovers import Leftover, left_behind, leftovers_by_table
from forebay.batch.one_pass.writer import SUPERSEDED
from forebay.batch.reasons import EXPECTATION, OF_WHOLE_TABLES, TABLE_FAILED
from forebay.batch.retrying.chosen import Chosen
from forebay.batch.retrying.plan import RetryPlan
from forebay.batch.retrying.reserved import ReservedIds
from forebay.batch.writing import Writing
from forebay.counted import counted
from forebay.errors import Halt
from forebay.lake.layout import LEDGER, QUARANTINE
from forebay.lake.log.commit import has_transaction
from forebay.lake.objects import open_objects
from forebay.ledger.entry import HELD
from forebay.ledger.ledger import NAMES, rows_with
from forebay.table.commit import LogFailed, until_it_commits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYS = ("file_id", "byte_offset")
"""The identity of a held record. Never its line: many records may be on one."""
NO_TABLE = "no-table"
"""Why a retry leaves a record that no table accepts. A batch parks such a record."""


@dataclass(frozen=True)
class Retried:
    """The results of the chosen records; a record in none of these stays where it was."""

    chosen: int = 0
    tables: dict[str, int] = field(default_factory=dict)
    dropped: int = 0
    waiting: int = 0
    """Files that a batch is about to replace or to replay. Their records were not chosen."""
    superseded: int = 0
    """Records for tables that have rows of an earlier version or reading of their file. A replay of the file loads them."""
    refused: Mapping[str, int] = field(default_factory=dict, compare=False)
    """The records that stay, by the reason for which today's declarations refuse them. They may be held for another one."""

    @property
    def moved(self) -> int:
        return sum(self.tables.values()) + self.dropped

    def __add__(self, other: Retried) -> Retried:
        """The sum of two plans for one choice. The first one has already left out the files that the second one leaves out."""
        tables = Counter(self.tables) + Counter(other.tables)
        return Retried(
            self.chosen + other.chosen,
            dict(tables),
            self.dropped + other.dropped,
            max(self.waiting, other.waiting),
            self.superseded + other.superseded,
            Counter(self.refused) + Counter(other.refused),
        )


@dataclass(frozen=True)
class Moving:
    """One plan on its way. `keep` makes durable which tables have the records."""

    plan: RetryPlan
    chosen: Chosen
    dedupe: Dedupe
    writing: Writing
    reserved: ReservedIds
    still_ours: Callable[[], None]
    keep: Callable[[Collection[str]], None]

    def run(self) -> Retried:
        fates = self.chosen.fates
        rows = by_table(fates)
        wanted = {*rows}
        if not self._has(self.writing.place_of(LEDGER)):
            in_tables = self._move(wanted)
        else:
            in_tables = self._in_tables(wanted)
        self.let_go(in_tables)
        tables = {name: count for name, count in rows.items() if name in in_tables}
        dropped, superseded = (rows_of(fates, fate) for fate in ("drop", SUPERSEDED))
        refused = refused_in(fates, in_tables)
        return Retried(sum(fate.rows for fate in fates), tables, dropped, len(self.plan.without), superseded, refused)

    def _move(self, wanted: set[str]) -> set[str]:
        """The tables that have the records now, as the ledger counts them."""
        self.still_ours()
        in_tables = self._in_tables(wanted)
        self._remember(wanted, in_tables)
        self.still_ours()
        self._account([fate for fate in self.chosen.fates if _moves(fate, in_tables)], in_tables)
        return in_tables

    def _in_tables(self, wanted: set[str]) -> set[str]:
        """The tables that have the records. A table that failed may not be tried under this number again: ids of its records
        leave, and the ledger counts what moved."""
        made = self.chosen.made
        if self.plan.written is not None:
            if made is not None:
                made.undo()
            return {*self.plan.written}
        if made is not None:
            leftovers = self.leftovers({fate.file_id for fate in self.chosen.fates})
            self.writing.write_again(made, leftovers_by_table(leftovers))
        in_tables = self._written(wanted)
        self.keep(in_tables)
        return in_tables

    def _remember(self, wanted: set[str], in_tables: set[str]) -> None:
        made = self.chosen.made
        if made is None or not self.dedupe.wanted:
            return
        unwritten = dict.fromkeys(wanted - in_tables, TABLE_FAILED)
        ids = self.writing.ids_of(made, replaces=False, without=unwritten)
        self.writing.remember(ids, unwritten, self.chosen.fates, self.dedupe)
        self.reserved.release(made, self.dedupe, self.writing, unwritten)

    def _written(self, tables: set[str]) -> set[str]:
        return {table for table in tables if self._table_has(self.writing.place_of(table))}

    def _table_has(self, path: str) -> bool:
        """A table may ask for a feature that Kernel lacks. It fails alone, and its log still says what was committed."""
        try:
            return self._has(path)
        except LogFailed as unread:
            if not unread.lasts:
                raise
        txn = self.writing.txn
        return has_transaction(open_objects(path), txn.app_id, txn.version)

    def _has(self, path: str) -> bool:
        return self.writing.logs.has(path, self.writing.txn, again=True)

    def _account(self, moved: Sequence[Fate], in_tables: Collection[str]) -> None:
        """The ledger's rows of these files, after the move."""
        if not moved:
            return
        by_file: dict[str, list[Fate]] = {}
        for fate in moved:
            by_file.setdefault(fate.file_id, []).append(fate)
        written = by_table(moved).keys()

        def changes() -> list[Change]:
            found = self.ledger_rows(by_file.keys())
            if len(found) != len(by_file):
                raise Halt(
                    f"{counted(len(by_file), 'file', 'has')} held records, but the ledger has {len(found)} of them"
                )
            left = [one for one in self.leftovers(by_file.keys()) if one.tables.keys() & written]
            settled = [(row, self._settled(row, by_file[row["file_id"]])) for row in found]
            self._say_what_is_held([made for _, made in settled], in_tables)
            return settled + [(one.row, one.without(written)) for one in left]

        self.change_ledger(changes)

    def ledger_rows(self, file_ids: Collection[str]) -> list[dict[str, Any]]:
        found = rows_with(self._rows(LEDGER), "file_id", "string", file_ids).collect()
        return [{**dict.fromkeys(NAMES), **row.asDict()} for row in found]

    def change_ledger(self, changes: Callable[[], list[Change]]) -> None:
        to = self.writing
        change_counts(to.spark, to.place_of(LEDGER), changes, txn=to.txn, logs=to.logs)

    def _rows(self, name: str) -> DataFrame:
        return self.writing.spark.read.format("delta").load(self.writing.place_of(name))

    def leftovers(self, file_ids: Collection[str]) -> list[Leftover]:
        """The rows of earlier versions of these files: they are removed from a table when the newer version's rows are
        added."""
        return left_behind(self._rows(LEDGER), self.writing.service, sorted(file_ids))

    def _settled(self, row: dict[str, Any], moved: Sequence[Fate]) -> dict[str, Any]:
        tables = Counter[str](row["tables"] or {})
        tables.update(by_table(moved))
        count, dropped = sum(fate.rows for fate in moved), rows_of(moved, "drop")
        held = HELD[self.plan.choice.place]
        if row[held] < count:
            leave = counted(count, "record", "leaves")
            raise Halt(f"{row['key']}: {leave}, but the ledger has {row[held]} {held}")
        made = {**row, held: row[held] - count, "dropped": row["dropped"] + dropped, "tables": dict(tables)}
        return {**made, "written": sum(tables.values())}

    def _say_what_is_held(self, rows: Sequence[dict[str, Any]], in_tables: Collection[str]) -> None:
        """A reason of whole tables goes from a file whose other records are held for other reasons."""
        of_tables = [row for row in rows if row["reason"] in OF_WHOLE_TABLES]
        wait = self.wait_for_tables([row["file_id"] for row in of_tables if row["quarantined"]], in_tables)
        for row in of_tables:
            row["reason"] = row["reason"] if row["file_id"] in wait else None

    def wait_for_tables(self, file_ids: Sequence[str], in_tables: Collection[str]) -> set[str]:
        """Those of the files that have records in the quarantine for a reason of whole tables, after the move."""
        if not file_ids:
            return set()
        held = self._rows(QUARANTINE)
        held = rows_with(held.where(held.reason.isin(*OF_WHOLE_TABLES)), "file_id", "string", file_ids)
        left = held.join(self.chosen.gone(in_tables), [*KEYS], "left_anti").select("file_id").distinct()
        return {row.file_id for row in left.collect()}

    def let_go(self, in_tables: set[str]) -> None:
        """Removes the moved records from the table that held them. Repeated, it changes nothing."""
        from delta.tables import DeltaTable

        gone = self.chosen.gone(in_tables)
        held = DeltaTable.forPath(self.writing.spark, self.writing.place_of(self.plan.choice.place)).alias("held")
        same = " AND ".join(f"held.{key} = gone.{key}" for key in KEYS)
        until_it_commits(
            lambda: held.merge(gone.alias("gone"), same).whenMatchedDelete().execute(),
            "the records were moved, but could not be removed from where they were held: run the command again",
        )


def refused_in(fates: Iterable[Fate], in_tables: Collection[str]) -> Counter[str]:
    """The records that stay, by reason."""
    refused = Counter[str]()
    for fate in fates:
        if fate.fate == "quarantine":
            refused[fate.reason or EXPECTATION] += fate.rows
        elif fate.fate == "park":
            refused[NO_TABLE] += fate.rows
        elif fate.fate == "write" and fate.table not in in_tables:
            refused[TABLE_FAILED] += fate.rows
    return refused


def _moves(fate: Fate, in_tables: set[str]) -> bool:
    return fate.fate == "drop" or (fate.fate == "write" and fate.table in in_tables)
