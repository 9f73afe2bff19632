"""The plan of a rollback, and the ledger's rows of its files afterwards.

Pure, but for reading the ledger. Removed rows are counted as dropped, with the reason `rolled-back`; restored rows are
subtracted from the dropped ones. On request, the files of removed rows are marked for a replay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from deltalake import DeltaTable

from forebay.counted import counted
from forebay.errors import Halt
from forebay.ledger.entry import (
    FORGET,
    FORGOTTEN,
    PARTLY_REPLAYED,
    PUT_AGAIN,
    REPLAY,
    ROLLED_BACK,
    WANTED_AGAIN,
    detail_with,
    tables_of_earlier_reading,
)
from forebay.ledger.versions import OVERWRITTEN
from forebay.operate.lake_view import rows_with
from forebay.operate.looking.files import LedgerFile

UNREAD = ("missing", "denied", "unavailable", "skipped", "ignored")
"""Such a file is read again, or may be. Rows of it that come back, from before it was forgotten or replaced, then have to make
room, and leave with a later version."""

CHANGED = ("outcome", "reason", "detail", "records", "written", "dropped", "tables")
"""Columns of the ledger."""


class Reading(NamedTuple):
    """Rows have the id of their file, and the time at which the batch or the retry began that wrote them. Rows of other tools
    may have neither."""

    file_id: str | None
    at: datetime | None


@dataclass(frozen=True)
class TableBack:
    """`changes` are rows by file id: how many come, or leave where it is negative. `came` says when the oldest of the rows that
    come was read, in ISO format. `exchanged` rows come and leave: they are of two readings of one file."""

    table: str
    now: int
    to: int
    changes: Mapping[str, int]
    came: Mapping[str, str] = field(default_factory=dict)
    exchanged: int = 0

    @classmethod
    def of(cls, table: str, now: int, to: int, rows: Mapping[Reading, int]) -> TableBack:
        """`rows` come, or leave where they are negative."""
        changes, come, came = Counter[str](), Counter[str](), dict[str, datetime]()
        for (file_id, at), count in rows.items():
            if not file_id or not count:
                continue
            changes[file_id] += count
            come[file_id] += max(0, count)
            if count > 0 and at is not None:
                came[file_id] = min(at, came.get(file_id, at))
        counted = {file_id: count for file_id, count in sorted(changes.items()) if count}
        read = {file_id: at.isoformat() for file_id, at in sorted(came.items())}
        return cls(table, now, to, counted, read, come.total() - sum(max(0, rows) for rows in counted.values()))

    @property
    def files(self) -> set[str]:
        return {*self.changes, *self.came}

    def brings_earlier_reading(self, file: LedgerFile) -> bool:
        """Whether the rows that come were read before the reading that the ledger has of the file."""
        came = self.came.get(file.file_id)
        return came is not None and file.claimed_at is not None and datetime.fromisoformat(came) < file.claimed_at

    @property
    def leaving(self) -> int:
        return self.exchanged - sum(rows for rows in self.changes.values() if rows < 0)

    @property
    def coming(self) -> int:
        return self.exchanged + sum(rows for rows in self.changes.values() if rows > 0)


@dataclass(frozen=True)
class Rollback:
    """`replay`: files that lose rows, or get those of an earlier reading, are read again."""

    number: str
    tables: tuple[TableBack, ...]
    replay: bool = False
    stay: Mapping[str, str] = field(default_factory=dict)
    """Tables of the plan that could not go back, and why; their counts stay as well."""

    @property
    def files(self) -> set[str]:
        return {file_id for one in self.tables for file_id in one.files}


def files_of(ledger: DeltaTable, plan: Rollback) -> list[LedgerFile]:
    """The ledger's rows of the plan's files. `Halt` where it lacks one."""
    found = rows_with(ledger, "*", "file_id", plan.files)
    if len(found) != len(plan.files):
        raise Halt(
            f"{counted(len(plan.files), 'file', 'has')} rows that would leave or return, but the ledger has "
            f"{len(found)} of them. An unfinished batch wrote the others: let a job finish it (`forebay ingest --drain`), "
            "then repeat this command. Nothing was done"
        )
    return [LedgerFile.of(row) for row in found]


def entries_after(ledger: DeltaTable, plan: Rollback, files: Iterable[LedgerFile]) -> list[dict[str, Any]]:
    """`files` are those of the plan. `Halt` where an entry's sum would not hold."""
    after = {file.file_id: _entry_after(file, plan) for file in files}
    if plan.replay:
        back = {
            file.superseded_by for file in files if any(one.changes.get(file.file_id, 0) > 0 for one in plan.tables)
        }
        after |= _of_later_versions(ledger, back, after)
    return list(after.values())


def left_elsewhere(plan: Rollback, files: Iterable[LedgerFile]) -> Iterator[tuple[LedgerFile, set[str]]]:
    """Superseded versions that would be in force again, each with the other tables that still have rows of it: these could
    not be written when the later version came."""
    for file in files:
        is_back = file.outcome == "superseded" != _entry_after(file, plan)["outcome"]
        others = {name for name, rows in file.tables.items() if rows} if is_back else set()
        if stay := others - {one.table for one in plan.tables if file.file_id in one.files}:
            yield file, stay


def _of_later_versions(
    ledger: DeltaTable, file_ids: Iterable[str | None], after: Mapping[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The version that replaced a returning one is replaced again, also where it lost no row itself."""
    entries: dict[str, dict[str, Any]] = {}
    wanted, seen = {one for one in file_ids if one}, set[str]()
    while wanted:
        seen |= wanted
        files = [LedgerFile.of(row) for row in rows_with(ledger, "*", "file_id", wanted)]
        for file in files:
            entry = after.get(file.file_id) or _as_it_is(file)
            if entry["outcome"] in ("loaded", "empty"):
                entries[file.file_id] = {**entry, "outcome": REPLAY}
        wanted = {file.superseded_by for file in files if file.superseded_by} - seen
    return entries


def _as_it_is(file: LedgerFile) -> dict[str, Any]:
    entry: dict[str, Any] = {name: getattr(file, name) for name in ("file_id", *CHANGED)}
    return {**entry, "tables": list(file.tables.items())}


def _entry_after(file: LedgerFile, plan: Rollback) -> dict[str, Any]:
    """Rows that come were dropped before. Those beyond that are of an earlier reading: the file was replayed since then.
    A version that is in force again keeps the id of the later one, whose held records must not land beside it. Once nothing is
    left of it, it is superseded as before. A file that was forgotten stays so: the next batch takes out what comes of it. One
    that was rolled back stays so while records of it are dropped: nobody knows whether those are rows of another table that
    has not come back."""
    changes = {one.table: one.changes[file.file_id] for one in plan.tables if file.file_id in one.changes}
    tables = Counter(file.tables)
    for table, rows in changes.items():
        tables[table] += rows
    beyond = max(0, sum(changes.values()) - file.dropped)
    if any(rows < 0 for rows in tables.values()):
        raise Halt(
            f"{file.uri}: the ledger counts its rows as {dict(file.tables)}, and a change of {changes} does not fit; "
            "`forebay audit` says what differs. Nothing was done"
        )
    left = {table: rows for table, rows in sorted(tables.items()) if rows}
    leave = any(rows < 0 for rows in changes.values())
    earlier = {one.table for one in plan.tables if one.brings_earlier_reading(file)}
    kept = _keep_earlier_reading(file, plan, earlier) & left.keys()
    come = any(rows > 0 for rows in changes.values())
    back = come and (file.outcome == "empty" or (file.outcome == "superseded" and not leave))
    outcome = "loaded" if back else file.outcome
    if plan.replay and (leave or earlier or beyond) and file.outcome in ("loaded", "empty"):
        outcome = REPLAY
    elif file.outcome == FORGOTTEN:
        outcome = REPLAY if file.reason == WANTED_AGAIN else FORGET
    elif (file.outcome in UNREAD and left) or (back and file.reason == PUT_AGAIN):
        outcome = REPLAY
    dropped = file.dropped + beyond - sum(changes.values())
    was = ROLLED_BACK if file.reason == PARTLY_REPLAYED else file.reason
    as_before = not back and file.outcome != FORGOTTEN and (was != ROLLED_BACK or dropped > 0)
    reason = ROLLED_BACK if leave or beyond else was if as_before else None
    if leave and outcome == "loaded" and file.superseded_by and not (left or file.quarantined or file.parked):
        outcome, reason = "superseded", OVERWRITTEN
    if outcome == "superseded" and file.reason == PUT_AGAIN:
        reason = PUT_AGAIN
    return {
        "file_id": file.file_id,
        "outcome": outcome,
        "reason": PARTLY_REPLAYED if kept else reason,
        "detail": None if file.outcome == FORGOTTEN else detail_with(kept, file.reason, file.detail),
        "records": file.records + beyond,
        "written": sum(left.values()),
        "dropped": dropped,
        "tables": list(left.items()),
    }


def _keep_earlier_reading(file: LedgerFile, plan: Rollback, earlier: Set[str]) -> set[str]:
    """The tables whose rows are not of the last reading of the file, so that a retry must leave them alone: those that get such
    rows while records of the file are held, and those of a replay in part that get no rows of the last reading now."""
    if file.outcome == FORGOTTEN:
        return set()
    kept, is_held = tables_of_earlier_reading(file.reason, file.detail), bool(file.quarantined or file.parked)
    came = {one.table for one in plan.tables if file.file_id in one.came}
    return {*(kept - came), *(earlier if is_held else kept & earlier)}
