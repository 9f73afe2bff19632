"""Removes rows of superseded files that a table still has, because it could not be written when the newer version arrived.
Such a file may have been forgotten with that version.

In: the ledger, which names their tables. Out: their removal. If the newer version's rows for the table wait in the quarantine,
a retry swaps both (`batch.retrying`). If it has none, `remove_leftovers` removes them when a job starts. A second run finds
nothing to do.

A rollback may restore a superseded version, and a replay may leave the rows of an earlier reading. `other_rows_in_force` names
the tables which the later records must not enter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from forebay.batch.events import LeftoversRemoved
from forebay.batch.ledger_change import Change, change_counts
from forebay.batch.reasons import OF_WHOLE_TABLES
from forebay.declaration.service import Service
from forebay.events import Emit
from forebay.lake.layout import LEDGER, QUARANTINE, application, table_path
from forebay.lake.log.live_file import LiveFile
from forebay.lake.log.snapshot import live_files
from forebay.lake.objects import Objects, open_objects
from forebay.ledger.data_files import READ_AT_ONCE, opened, plainly_typed, values_in
from forebay.ledger.entry import FORGET, PARTLY_REPLAYED
from forebay.ledger.ledger import NAMES, rows_with
from forebay.table.commit import LogFailed, Txn
from forebay.table.destination import Appended, Destination
from forebay.table.kernel import TableLogs
from forebay.table.replace import replace
from forebay.threads import in_threads

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LEFT = ("superseded", FORGET)
"""The outcomes of such files."""


@dataclass(frozen=True)
class Leftover:
    """A superseded or half forgotten file's row in the ledger. `tables` are those that still have rows of it."""

    row: Mapping[str, Any]

    @property
    def file_id(self) -> str:
        return str(self.row["file_id"])

    @property
    def by(self) -> str | None:
        """The file that took its place."""
        found: str | None = self.row["superseded_by"]
        return found

    @property
    def tables(self) -> Mapping[str, int]:
        return dict(self.row["tables"] or {})

    def without(self, tables: Collection[str]) -> dict[str, Any]:
        """The row once the file's rows have left these tables."""
        left = {name: rows for name, rows in self.tables.items() if name not in tables}
        gone = sum(self.tables.values()) - sum(left.values())
        return {
            **self.row,
            "tables": left,
            "written": self.row["written"] - gone,
            "dropped": self.row["dropped"] + gone,
        }


def left_behind(ledger: DataFrame, service: Service, by: Sequence[str] | None = None) -> list[Leftover]:
    """The leftovers of a service; only those superseded `by` these files, if they are given. A service that
    replaces nothing may have replaced files before, or have read a duplicate instead of a replayed file that is gone."""
    from pyspark.sql import functions as F

    rows = ledger.where(_is_left() & (F.col("written") > 0) & (F.col("service") == service.name))
    if by is not None:
        rows = rows.where(F.col("superseded_by").isin(list(by)))
    return [Leftover({**dict.fromkeys(NAMES), **row.asDict()}) for row in rows.collect()]


def _is_left() -> Column:
    """Whether a later version took the place of a file. An operator may have wanted it forgotten: no command reads it again
    before that is done."""
    from pyspark.sql import functions as F

    later, whole = F.col("superseded_by").isNotNull(), F.col("reason").isin(*OF_WHOLE_TABLES)
    half_forgotten = (F.col("outcome") == FORGET) & later & whole & (F.col("quarantined") == 0)
    return (F.col("outcome") == "superseded") | F.coalesce(half_forgotten, F.lit(False))


def other_rows_in_force(ledger: DataFrame, service: Service) -> list[tuple[str, str]]:
    """Files, each with a table whose rows of it are not those of the last reading. A rollback brought the table back to an
    earlier version or reading of the file, or the table could not be written when the file was replayed. Or it brought rows
    of a forgotten version back, which leave with the next batch."""
    from pyspark.sql import functions as F

    has_later = F.col("superseded_by").isNotNull()
    came_back = has_later & ~_is_left() & (F.col("written") > 0)
    partly = (F.col("reason") == PARTLY_REPLAYED) & (F.col("service") == service.name)
    there = F.map_keys("tables")
    kept = F.array_intersect(F.split(F.substring_index("detail", ";", 1), ", "), there)
    of_earlier_reading = ledger.where(partly).select("file_id", F.lit(None).cast("string"), F.explode(kept))
    of_earlier_version = ledger.where(came_back).select("file_id", "superseded_by", F.explode(there))
    found = [(row[0], row[1], row[2]) for row in of_earlier_reading.union(of_earlier_version).collect()]

    def later_of(file_ids: Collection[str]) -> dict[str, str]:
        asked = rows_with(ledger.where(has_later), "file_id", "string", file_ids)
        return {row.file_id: row.superseded_by for row in asked.select("file_id", "superseded_by").collect()}

    partly_replayed = [(file_id, table) for file_id, version, table in found if version is None]
    beside = beside_forgotten(*_to_be_forgotten(ledger, service))
    return partly_replayed + beside + all_later([one for one in found if one[1] is not None], later_of)


def _to_be_forgotten(ledger: DataFrame, service: Service) -> tuple[list[Any], list[Any]]:
    """The rows of files whose rows the next batch takes out, of keys with one version at a time; and the rows of these keys."""
    from pyspark.sql import functions as F

    going = (F.col("outcome") == FORGET) & ~_is_left() & (F.col("written") > 0)
    marked = ledger.where(going & (F.col("service") == service.name)).collect()
    marked = [row for row in marked if service.rule_of(row.key) != "append"]
    hashes = {row.key_hash for row in marked}
    return marked, rows_with(ledger, "key_hash", "long", hashes).collect() if hashes else []


def beside_forgotten(
    marked: Iterable[Mapping[str, Any]], versions: Iterable[Mapping[str, Any]]
) -> list[tuple[str, str]]:
    """The other versions of these files, each with the tables that it must not enter before the rows of those have left. A
    file that was forgotten before its key got a later version does not name that one."""
    of_keys: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in marked:
        of_keys.setdefault((row["bucket"], row["key"]), []).append(row)
    return [
        (other["file_id"], table)
        for other in versions
        for row in of_keys.get((other["bucket"], other["key"]), ())
        if row["file_id"] != other["file_id"]
        for table in row["tables"]
    ]


def all_later(
    back: Iterable[tuple[str, str, str]], later_of: Callable[[Collection[str]], Mapping[str, str]]
) -> list[tuple[str, str]]:
    """All that came after the versions that are `back`, each with the tables that it must not enter. The next version may have
    been replaced as well. `back` are files, the next version of each, and a table."""
    found, at = set[tuple[str, str]](), {*back}
    seen = {(file_id, file_id, table) for file_id, _, table in at}
    while at := at - seen:
        seen |= at
        found |= {(version, table) for _, version, table in at}
        later = later_of({version for _, version, _ in at})
        at = {(file_id, later[version], table) for file_id, version, table in at if version in later}
    return sorted(found)


def leftovers_by_table(leftovers: Iterable[Leftover]) -> dict[str, list[str]]:
    """The ids of the files that a table has leftovers of."""
    files: dict[str, list[str]] = {}
    for one in leftovers:
        for table in one.tables:
            files.setdefault(table, []).append(one.file_id)
    return files


def remove_leftovers(
    spark: SparkSession,
    service: Service,
    lake: str,
    *,
    paused: Collection[str],
    logs: TableLogs,
    emit: Emit,
    now: datetime,
) -> None:
    """Rows that cannot be removed now stay, and the ledger still says so; rows in a paused table stay, too."""
    ledger = table_path(lake, LEDGER)
    if logs.look(ledger, again=True) is None or not any_left(open_objects(ledger)):
        return
    found = left_behind(spark.read.format("delta").load(ledger), service)
    waiting = _waiting_in_quarantine(spark, lake, logs, found)
    stays = service.with_paused(paused).is_paused
    ready: dict[str, set[str]] = {}
    for table, file_ids in sorted(leftovers_by_table(found).items()):
        ids = {one.file_id for one in found if one.file_id in file_ids and (one.by, table) not in waiting}
        if ids and not stays(table):
            ready[table] = ids
    # Each removal has a number of its own, whatever the clock says: a table that is asked twice, or the ledger, must not take
    # the second one for the first.
    app_id = application(service.name, "leftovers")
    last = {table: _last_number(logs, table_path(lake, table), app_id) for table in ready}
    known = [number for number in last.values() if number is not None]
    before = max([logs.last_version_at(ledger, app_id, again=True), *known])
    txn = Txn(app_id, max(int(now.timestamp() * 1000), before + 1))
    gone: dict[str, set[str]] = {}
    for table, ids in ready.items():
        if last[table] is not None and _removed(spark, lake, table, ids, txn, logs):
            emit(LeftoversRemoved(service=service.name, table=table, files=len(ids)))
            for file_id in ids:
                gone.setdefault(file_id, set()).add(table)
    if gone:

        def changes() -> list[Change]:
            now = left_behind(spark.read.format("delta").load(ledger), service)
            return [(one.row, one.without(gone[one.file_id])) for one in now if one.file_id in gone]

        change_counts(spark, ledger, changes, txn=txn, logs=logs)


def any_left(ledger: Objects) -> bool:
    """Whether there may be any, of any service. A job that starts asks it without Spark. Most data files have no such outcome,
    as the statistics of their columns say."""
    return any(in_threads(partial(_has_left, ledger), live_files(ledger), READ_AT_ONCE))


def _has_left(ledger: Objects, file: LiveFile) -> bool:
    with opened(ledger, file) as parquet:
        if values_in(parquet, "outcome").isdisjoint(LEFT):
            return False
        rows = plainly_typed(parquet.read(columns=["outcome", "written"]))
    left = pc.is_in(rows["outcome"], value_set=pa.array(LEFT))
    return bool(pc.any(pc.and_(left, pc.greater(rows["written"], 0))).as_py())


def _waiting_in_quarantine(
    spark: SparkSession, lake: str, logs: TableLogs, leftovers: Sequence[Leftover]
) -> set[tuple[str | None, str]]:
    """Newer versions, and the tables that their rows wait for. Refused records may stay in the quarantine for ever."""
    from pyspark.sql import functions as F

    path, newer = table_path(lake, QUARANTINE), sorted({one.by for one in leftovers if one.by})
    if not newer or logs.look(path, again=True) is None:
        return set()
    waits = F.col("file_id").isin(newer) & F.col("reason").isin(*OF_WHOLE_TABLES)
    held = spark.read.format("delta").load(path).where(waits)
    return {(row.file_id, row.table) for row in held.select("file_id", "table").distinct().collect()}


def _last_number(logs: TableLogs, path: str, app_id: str) -> int | None:
    """The number of the last removal from a table. None where its log cannot be read: its rows stay, and no other table's."""
    try:
        return logs.last_version_at(path, app_id, again=True)
    except LogFailed:
        return None


def _removed(spark: SparkSession, lake: str, table: str, file_ids: Collection[str], txn: Txn, logs: TableLogs) -> bool:
    path = table_path(lake, table)
    if logs.look(path, again=True) is None:
        return True
    return isinstance(replace(spark, Destination(table, path), file_ids, None, txn=txn, logs=logs), Appended)
