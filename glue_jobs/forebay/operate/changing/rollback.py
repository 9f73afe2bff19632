"""Restores tables to an earlier version, and the ledger with them.

In: tables, and a version or a time. Out: a `Rollback` to inspect, with the numbers of rows that each file loses and gets. Then
one RESTORE for each table and one commit to the ledger. Removed rows are counted as dropped, with the reason `rolled-back`,
and their files are marked for a replay on request. No JVM is needed.

The leases of the services and of the tables keep every writer away until the plan is durable. After that, the plan does: every
job that acquires such a lease checks for it. Each commit carries the plan's number. So a repeated command finishes an
interrupted rollback, and until then no job ingests. A table that somebody else changed since the plan stays unchanged, and so
do its counts.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction

from forebay.errors import Halt, InvalidConfiguration
from forebay.lake.conflict import commit
from forebay.lake.layout import (
    DERIVED_FROM,
    ERASED,
    LEDGER,
    application,
    table_path,
)
from forebay.lake.log.listing import committed_at
from forebay.lake.objects import Objects, open_objects
from forebay.lake.rollback_plan import command_of, delete_plan, is_drop, rollback_plan, write_plan, write_plan_again
from forebay.ledger.entry import REPLAY, ROLLED_BACK
from forebay.operate.changing.alone import alone
from forebay.operate.changing.reopen import reopen
from forebay.operate.changing.replay import Replay, mark
from forebay.operate.changing.rollback_erased import must_have_nobody_erased
from forebay.operate.changing.rollback_ids import ids_as_then, must_know_ids
from forebay.operate.changing.rollback_ledger import (
    CHANGED,
    Reading,
    Rollback,
    TableBack,
    entries_after,
    files_of,
    left_elsewhere,
)
from forebay.operate.lake_view import LakeView, known_table
from forebay.operate.looking.files import LedgerFile

MARK = "forebay-rollback"
UNDERSTOOD = {"appendOnly", "invariants", "checkConstraints", "timestampNtz", "changeDataFeed"}
"""Features of tables that delta-rs writes."""
MOMENT = pa.timestamp("us", "UTC")
LOOKED_BACK = 1000
"""Commits in which a commit of ours is looked for."""


def check_rollback(view: LakeView, tables: Iterable[str], to: int | datetime) -> bool:
    """Whether a table must go back. `InvalidConfiguration` where one cannot go back there, as far as that is known
    while a job runs."""
    found = [_now_and_then(view, known_table(view, table), to) for table in tables]
    return not all(_is_there(now, then) for now, then in found)


def plan_rollback(view: LakeView, tables: Sequence[str], to: int | datetime, *, replay: bool) -> Rollback:
    """`InvalidConfiguration` where a table cannot go back there."""
    found = {known_table(view, table): _now_and_then(view, table, to) for table in tables}
    go = tuple(_table_back(view, name, *pair) for name, pair in found.items() if not _is_there(*pair))
    plan = Rollback(uuid.uuid4().hex[:12], go, replay)
    entries_in(view, plan)  # refused before anything is done
    return plan


def entries_in(view: LakeView, plan: Rollback) -> list[dict[str, Any]]:
    """The ledger's rows after the rollback. `Halt` where one cannot be."""
    ledger = _there(view, LEDGER)
    files = files_of(ledger, plan)
    must_know_ids(view, left_elsewhere(plan, files))
    return entries_after(ledger, plan, files)


def roll_back(view: LakeView, plan: Rollback) -> Rollback:
    """The rollback without the tables that stay, such as one that somebody changed since the plan."""
    with alone(view, [one.table for one in plan.tables]) as must_be_alone:
        entries_in(view, plan)  # again: a job may have ended its batch since the plan was shown
        write_plan(view.lake, asdict(plan), must_be_alone)
        return _carry_out(view, plan)


def finish_earlier(
    view: LakeView, tables: Sequence[str] = (), to: int | datetime | None = None, *, replay: bool = False
) -> Rollback | None:
    """Finishes what was interrupted; None where nothing was. `Halt` where a drop of tables was. `replay`: whether its files are
    to be read again, too, if it takes these tables to that version."""
    stored = rollback_plan(view.lake)
    if stored is None:
        return None
    if is_drop(stored):
        raise Halt(f"a drop of tables of {view.lake} is unfinished: repeat `{command_of(stored)}` to finish it")
    plan = Rollback(stored["number"], tuple(TableBack(**one) for one in stored["tables"]), stored["replay"])
    with alone(view, [one.table for one in plan.tables]):
        if replay and not plan.replay and _is_repeated(view, plan, tables, to):
            plan = replace(plan, replay=True)
            write_plan_again(view.lake, asdict(plan))  # for whoever finishes it, if this run is killed
        return _carry_out(view, plan)


def _is_repeated(view: LakeView, plan: Rollback, tables: Sequence[str], to: int | datetime | None) -> bool:
    """Whether all tables of the plan go where these will go. `Halt` where only some of them do: their files may have rows in
    the others, too."""
    others = [one.table for one in plan.tables if one.table not in tables or not _is_version(view, one, to)]
    if others and len(others) < len(plan.tables):
        raise Halt(
            f"the unfinished rollback takes {', '.join(others)} back, too, and without --and-replay. Repeat "
            f"`{command_of(asdict(plan))}` to finish it. Then `forebay files list --reason {ROLLED_BACK}` lists files for "
            "`forebay replay`. Nothing was done"
        )
    return not others


def _is_version(view: LakeView, one: TableBack, to: int | datetime | None) -> bool:
    """False where the table is gone, or no longer has that version: the command is refused after this."""
    table = view.table(one.table)
    if table is None or to is None:
        return False
    try:
        table.load_as_version(to)
    except (DeltaError, ValueError, OverflowError, FileNotFoundError):
        return False
    return table.version() == one.to


def _carry_out(view: LakeView, plan: Rollback) -> Rollback:
    reopen(view, plan.files)
    before = _version_before(_there(view, LEDGER), plan.number)
    counted = before is not None
    stay = {one.table: why for one in plan.tables if (why := _restore(view, one, plan.number, counted=counted))}
    done = replace(plan, tables=tuple(one for one in plan.tables if one.table not in stay), stay=stay)
    if before is None:
        _change_ledger(view, done)
    elif plan.replay:
        _mark(view, done, before)
    reopen(view, plan.files)  # again: somebody may have looked before the ledger changed
    ids_as_then(view, done)
    delete_plan(view.lake)
    return done


def _restore(view: LakeView, one: TableBack, number: str, *, counted: bool) -> str:
    """Why the table stays unchanged; empty where it went back, now or before. Once the ledger has `counted` the rows of those
    that did, no other one follows: nothing would count its rows."""
    table = view.table(one.table)
    if table is None:
        return "it is gone"
    if _has(table, number):
        return ""
    if counted:
        return "it could not go back when the others did"
    if table.version() - _has(table, _before(number)) != one.now:
        return "somebody changed it since the plan"
    try:
        then = _as_of(view, one)
        must_have_nobody_erased(view, one.table, table, then)  # again: an erasure that finds no rows makes no commit
        if not _only_in(table, then):
            _append_no_rows(table, open_objects(table_path(view.lake, one.table)), _before(number))
        table.restore(one.to, commit_properties=_with(number))
    except InvalidConfiguration as erased:
        return str(erased)
    except DeltaError as refused:  # also where maintenance deleted that version since the plan
        return "" if _has(_there(view, one.table), number) else str(refused)
    return ""


def _as_of(view: LakeView, one: TableBack) -> DeltaTable:
    then = _there(view, one.table)
    then.load_as_version(one.to)
    return then


def _before(number: str) -> str:
    return f"{number}/before"


def _append_no_rows(table: DeltaTable, store: Objects, mark: str) -> None:
    """A data file for the rollback to remove, where it would remove nothing. A stream with `skipChangeCommits` takes a commit
    that only adds files for new rows, and would get those again that come back. It skips one that removes something."""
    partitions = table.metadata().partition_columns
    schema = pa.schema(table.schema())
    inside = pa.schema([field for field in schema if field.name not in partitions])
    sink, path = pa.BufferOutputStream(), f"part-{uuid.uuid4().hex}.parquet"
    pq.write_table(inside.empty_table(), sink)
    content = sink.getvalue().to_pybytes()
    store.write(path, content)
    nowhere = dict.fromkeys(partitions)
    file = AddAction(path, len(content), nowhere, int(time.time() * 1000), True, '{"numRecords":0}')
    table.create_write_transaction([file], "append", schema, partitions, commit_properties=_with(mark))
    table.update_incremental()


def _change_ledger(view: LakeView, plan: Rollback) -> None:
    """Read and changed as of one version: a commit in between is a conflict, and it begins again."""
    kinds = {"tables": pa.map_(pa.string(), pa.int64()), **dict.fromkeys(("records", "written", "dropped"), pa.int64())}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in ("file_id", *CHANGED)])

    def attempt() -> None:
        ledger = _there(view, LEDGER)
        rows = pa.Table.from_pylist(entries_after(ledger, plan, files_of(ledger, plan)), schema)
        merge = ledger.merge(
            rows, "t.file_id = s.file_id", source_alias="s", target_alias="t", commit_properties=_with(plan.number)
        )
        merge.when_matched_update({name: f"s.{name}" for name in CHANGED}).execute()

    commit(
        attempt,
        refused="the tables were rolled back, but other writers kept changing the ledger; repeat the command to finish it",
    )


def _mark(view: LakeView, plan: Rollback, before: int) -> None:
    """Marks the files that the ledger's commit left unchanged, where the replay was wanted only after it. Whose mark an
    operator has changed since then is left."""
    then = _there(view, LEDGER)
    try:
        then.load_as_version(before)
        wanted = {one["file_id"] for one in entries_after(then, plan, files_of(then, plan)) if one["outcome"] == REPLAY}
    except (DeltaError, OSError, pa.ArrowException):
        # Maintenance deleted that version. The plan alone says which files lost rows.
        wanted = {file_id for one in plan.tables for file_id, rows in one.changes.items() if rows < 0}
    rows = view.rows_with(LEDGER, "*", "file_id", wanted, where="outcome in ('loaded', 'empty')")
    mark(view, Replay(tuple(map(LedgerFile.of, rows)), {}))


def _now_and_then(view: LakeView, name: str, to: int | datetime) -> tuple[DeltaTable, DeltaTable]:
    table, then = _there(view, name), _there(view, name)
    if (log := table.metadata().configuration.get(DERIVED_FROM)) is not None:
        what = f"is computed from {log}"
        raise InvalidConfiguration.one(f"table {name}", what, f"roll {log} back; the next merge updates {name}")
    try:
        then.load_as_version(to)
    except (DeltaError, ValueError, OverflowError, FileNotFoundError) as refused:  # also where its log was cleaned up
        what = f"has no version {'of ' if isinstance(to, datetime) else ''}{to}"
        hint = f"its newest is {table.version()}; `forebay history --table {name} --days 30` lists versions"
        raise InvalidConfiguration.one(f"table {name}", what, hint) from refused
    # delta-rs gives the first version for a time before it. A commit that was cleaned up is old enough.
    at = committed_at(open_objects(table_path(view.lake, name)), then.version())
    if isinstance(to, datetime) and at is not None and at > to:
        raise InvalidConfiguration.one(f"table {name}", f"did not exist at {to}", "its log begins later")
    if any(table.transaction_version(app) != then.transaction_version(app) for app in _erasures(view)):
        what = f"has rows in version {then.version()} of people who have been erased since"
        raise InvalidConfiguration.one(f"table {name}", what, "name a later version")
    if unknown := sorted({*(table.protocol().writer_features or ())} - UNDERSTOOD):
        raise InvalidConfiguration.one(
            f"table {name}", f"has the feature {unknown[0]}", "RESTORE it with Spark while no job is running"
        )
    must_have_nobody_erased(view, name, table, then)
    return table, then


def _erasures(view: LakeView) -> list[str]:
    """Under which transactions rows of erased people left."""
    return [application(service, "erase") for service in open_objects(f"{view.lake}/{ERASED}").folders()]


def _is_there(table: DeltaTable, then: DeltaTable) -> bool:
    """Whether the table equals that version; also where it went back there before."""
    if table.version() == then.version():
        return True
    now, was = (
        (_paths(one), one.schema(), one.metadata().configuration, one.metadata().partition_columns)
        for one in (table, then)
    )
    return now == was


def _table_back(view: LakeView, name: str, table: DeltaTable, then: DeltaTable) -> TableBack:
    changes = _rows_by_reading(view, name, then, _only_in(then, table))
    changes.subtract(_rows_by_reading(view, name, table, _only_in(table, then)))
    return TableBack.of(name, table.version(), then.version(), changes)


def _only_in(one: DeltaTable, other: DeltaTable) -> set[str]:
    return _paths(one) - _paths(other)


def _paths(table: DeltaTable) -> set[str]:
    return {unquote(path) for path in pa.table(table.get_add_actions())["path"].to_pylist()}


def _rows_by_reading(view: LakeView, name: str, table: DeltaTable, paths: set[str]) -> Counter[Reading]:
    """The rows in these data files alone, from two columns."""
    counted: Counter[Reading] = Counter()
    for path in sorted(paths):
        try:
            rows = _as_readings(view.columns(name, path, ["_file_id", "_ingested_at"]))
        except FileNotFoundError:
            gone = f"its data file {path} is gone"
            raise InvalidConfiguration.one(
                f"version {table.version()}", gone, "maintenance deleted it: name a later version"
            ) from None
        groups = rows.group_by(rows.column_names, use_threads=False).aggregate([([], "count_all")])
        for one in groups.to_pylist():
            counted[Reading(one["_file_id"], one["_ingested_at"])] += one["count_all"]
    return counted


def _as_readings(rows: pa.Table) -> pa.Table:
    """In the types of a `Reading`. Spark's INT96 comes without a zone, another tool may have put another type there, and an
    erasure writes texts that Arrow reads as views."""
    at = rows["_ingested_at"]
    moments = at.cast(MOMENT, safe=False) if pa.types.is_timestamp(at.type) else pa.nulls(len(at), MOMENT)
    return pa.table({"_file_id": rows["_file_id"].cast(pa.string()), "_ingested_at": moments})


def _there(view: LakeView, name: str) -> DeltaTable:
    table = view.table(name)
    if table is None:
        raise Halt(f"table {name} disappeared")
    return table


def _has(table: DeltaTable, number: str) -> bool:
    return _version_before(table, number) is not None


def _version_before(table: DeltaTable, number: str) -> int | None:
    """The version before the commit with this number, if there is one."""
    found = (commit["version"] for commit in table.history(LOOKED_BACK) if commit.get(MARK) == number)
    return next((int(version) - 1 for version in found), None)


def _with(number: str) -> CommitProperties:
    return CommitProperties(custom_metadata={MARK: number})
