"""Drops tables for good: the ledger no longer counts their rows, and their folders go.

In: tables of a lake. Out: a `Drop` to inspect. Then the ledger counts their rows as dropped, with the reason `table-dropped`,
and the ids of `dedupe`, the folders and forebay's own notes about these tables are deleted, their pauses as well. The landed
files stay, so a replay brings the rows back where a declaration makes the table. No JVM is needed.

As with a rollback, leases keep every writer away until the plan is durable, and the plan does so from then on. Each step
changes only what is left, so a repeated command finishes an interrupted one.
"""

from __future__ import annotations

import shlex
import shutil
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from typing import Any

import pyarrow as pa
from botocore.exceptions import BotoCoreError, ClientError

from forebay.address import is_s3, local_folder
from forebay.aws.client import client
from forebay.declaration.kept.in_force import kept_services
from forebay.declaration.service import Service
from forebay.errors import Halt, InvalidConfiguration
from forebay.lake.conflict import commit
from forebay.lake.layout import (
    EXPIRED,
    HEALTH,
    IDS,
    LEDGER,
    NOT_MERGED,
    QUARANTINE,
    table_path,
    tombstones_of,
)
from forebay.lake.log.listing import has_log
from forebay.lake.objects import open_objects
from forebay.lake.paused import resume
from forebay.lake.rollback_plan import command_of, delete_plan, is_drop, rollback_plan, write_plan
from forebay.ledger.entry import PARTLY_REPLAYED, ROLLED_BACK, TABLE_DROPPED, dropped_with, tables_of_earlier_reading
from forebay.operate.changing.alone import alone
from forebay.operate.changing.must_stay import must_stay
from forebay.operate.lake_view import Counted, LakeView, counted_in_ledger, known_table, quoted, rows_of, without_log
from forebay.table.catalog import remove_entry

FILES_AT_ONCE = 20_000
"""Files whose rows of the ledger are changed in one commit. A day is never split."""
NOBODYS = "_forebay-tables-drop"
"""The name of an object that no table has."""


@dataclass(frozen=True)
class TableGone:
    """`rows` and `files` are those that the ledger counts; `objects` and `bytes` those of the folder. `waiting` are records in
    the quarantine by reason, and the declarations of `made_by` fit its name, so a
    record may make it again."""

    table: str
    rows: int
    files: int
    objects: int
    bytes: int
    waiting: Mapping[str, int]
    made_by: tuple[str, ...]


@dataclass(frozen=True)
class Drop:
    tables: tuple[TableGone, ...]

    @property
    def names(self) -> list[str]:
        return [one.table for one in self.tables]


@dataclass(frozen=True)
class Dropped:
    """`stay` are entries of the catalog that could not be removed, each with the reason; `absent` are tables without one."""

    names: tuple[str, ...] = ()
    catalog: str = ""
    stay: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()


def plan_drop(view: LakeView, names: Sequence[str]) -> Drop:
    """`InvalidConfiguration` with all reasons for which a table must stay for now."""
    services, counts = kept_services(view.lake), counted_in_ledger(view)
    for name in names:
        if name not in counts and not has_log(open_objects(table_path(view.lake, known_table(view, name)))):
            raise without_log(view, name)  # perhaps a folder of somebody else, such as that of the declarations
    if problems := must_stay(view, services, names):
        raise InvalidConfiguration(problems)
    return Drop(tuple(_table_gone(view, services, name, counts.get(name, Counted())) for name in dict.fromkeys(names)))


def drop(view: LakeView, plan: Drop, catalog: str = "") -> Dropped:
    """`catalog` is the Glue database whose entries go, too."""
    with _alone(view, plan.names) as must_be_alone:
        plan_drop(view, plan.names)  # again: a job may have taken up other declarations since the plan was shown
        _must_be_deletable(view, plan.names)
        tables = [{"table": name, "to": None} for name in plan.names]
        noted = {"number": uuid.uuid4().hex[:12], "tables": tables, "catalog": catalog}
        write_plan(view.lake, noted, must_be_alone)
        return _carry_out(view, plan.names, catalog)


def finish_earlier(view: LakeView) -> Dropped:
    """Finishes what was interrupted, with the catalog that was named then. `Halt` where a rollback was."""
    plan = rollback_plan(view.lake)
    if plan is None:
        return Dropped()
    if not is_drop(plan):
        raise Halt(f"a rollback of {view.lake} is unfinished: repeat `{command_of(plan)}` to finish it")
    names = [one["table"] for one in plan["tables"]]
    with _alone(view, names):
        return _carry_out(view, names, plan["catalog"])


def with_tombstones(names: Sequence[str]) -> list[str]:
    """The tables, and those of deleted keys that go with them, which are compacted as tables of their own."""
    return [*names, *map(tombstones_of, names)]


def _alone(view: LakeView, names: Sequence[str]) -> Any:
    return alone(view, with_tombstones(names))


def _carry_out(view: LakeView, names: Sequence[str], catalog: str) -> Dropped:
    _leave_ledger(view, names)
    commit(partial(_forget_ids, view, names), refused=_busy("ids of records"))
    for name in names:
        for folder in (name, tombstones_of(name)):
            _delete_folder(table_path(view.lake, folder))
    notes = [f"{place}/{name}.json" for place in (HEALTH, EXPIRED, NOT_MERGED) for name in names]
    open_objects(view.lake).delete(notes)
    resume(view.lake, names)
    became = {name: _entry_removed(view, name, catalog) for name in names} if catalog else {}
    delete_plan(view.lake)
    absent = tuple(name for name, why in became.items() if why is None)
    return Dropped(tuple(names), catalog, {name: why for name, why in became.items() if why}, absent)


# --- what goes ---


def _must_be_deletable(view: LakeView, names: Iterable[str]) -> None:
    """Asks S3 with an object that does not exist: a drop that is refused halfway keeps every job from starting."""
    for name in names:
        try:
            open_objects(table_path(view.lake, name)).delete([NOBODYS])
        except (Halt, InvalidConfiguration) as refused:
            raise Halt(f"table {name}: {refused}. Nothing was done") from None


def _table_gone(view: LakeView, services: Iterable[Service], name: str, counted: Counted) -> TableGone:
    found = list(open_objects(table_path(view.lake, name)).found())
    sql = f'select reason, count(line) n from t where "table" = {quoted(name)} group by reason order by reason'
    waiting = {row["reason"]: row["n"] for row in view.query(QUARANTINE, sql) if row["n"]}
    made_by = tuple(service.name for service in services if service.maker_of(name) is not None)
    size = sum(one.bytes for one in found)
    return TableGone(name, counted.rows, counted.files, len(found), size, waiting, made_by)


def _leave_ledger(view: LakeView, names: Sequence[str]) -> None:
    counted_here = " or ".join(f"array_has(map_keys(tables), {quoted(name)})" for name in names)
    days = view.query(LEDGER, f"select day, count(*) n from t where {counted_here} group by day order by day")
    for some in _portions(days):
        listed = ", ".join(f"date '{day}'" for day in some)
        in_days = f"day in ({listed})"
        change = partial(_change_ledger, view, names, in_days, counted_here)
        commit(change, refused=_busy("ledger"))


def _portions(days: Iterable[Mapping[str, Any]]) -> Iterator[list[Any]]:
    """Days whose files one commit changes."""
    before = 0

    def portion(row: Mapping[str, Any]) -> int:
        nonlocal before
        number, before = before // FILES_AT_ONCE, before + row["n"]
        return number

    for _, some in groupby(days, portion):
        yield [row["day"] for row in some]


def _change_ledger(view: LakeView, names: Collection[str], in_days: str, counted_here: str) -> None:
    ledger = view.table(LEDGER)
    if ledger is None:
        raise Halt("the ledger disappeared")
    columns = "file_id, outcome, reason, detail, written, quarantined, parked, dropped, tables"
    rows = rows_of(ledger, f"select {columns} from t where {in_days} and ({counted_here})")
    if not rows:
        return
    today = datetime.now(UTC).date()
    after = [_after(row, names, f"{today}") for row in rows]
    texts, numbers = ("file_id", "reason", "detail"), ("written", "dropped")
    kinds = {**dict.fromkeys(texts, pa.string()), **dict.fromkeys(numbers, pa.int64())}
    schema = pa.schema([*kinds.items(), ("tables", pa.map_(pa.string(), pa.int64()))])
    merge = ledger.merge(
        pa.Table.from_pylist(after, schema),
        f"t.{in_days} and t.file_id = s.file_id",
        source_alias="s",
        target_alias="t",
    )
    merge.when_matched_update({name: f"s.{name}" for name in schema.names if name != "file_id"}).execute()


def _after(row: Mapping[str, Any], names: Collection[str], day: str) -> dict[str, Any]:
    """The file's row without these tables. A reason stays that says what becomes of the file, or of its held records; so does
    that of a rollback, which may be taken back, and of a replay while another table has the rows of an earlier reading. Such a
    replay may have hidden that rows left another table with a rollback: they are among the dropped ones."""
    tables = Counter(dict(row["tables"]))
    gone = {name: tables.pop(name) for name in sorted(tables) if name in names}
    rows = sum(gone.values())
    reason = row["reason"]
    if reason == PARTLY_REPLAYED and tables_of_earlier_reading(reason, row["detail"]).isdisjoint(tables):
        reason = ROLLED_BACK if row["dropped"] else None
    says_more = reason in (ROLLED_BACK, PARTLY_REPLAYED) or bool(row["quarantined"] or row["parked"])
    stays = row["outcome"] != "loaded" or says_more
    details = [*filter(None, [row["detail"]]), *(f"{dropped_with(name)} on {day}" for name in gone)]
    return {
        "file_id": row["file_id"],
        "reason": reason if reason and stays else TABLE_DROPPED,
        "detail": "; ".join(details),
        "written": row["written"] - rows,
        "dropped": row["dropped"] + rows,
        "tables": list(tables.items()),
    }


def _forget_ids(view: LakeView, names: Iterable[str]) -> None:
    """A record of a table that comes back is not one that was seen before."""
    ids = view.table(IDS)
    if ids is not None and "table" in ids.schema().to_arrow().names:
        among = ", ".join(map(quoted, names))
        ids.delete(f'"table" in ({among})')


def _delete_folder(place: str) -> None:
    objects = open_objects(place)
    objects.delete([one.name for one in objects.found()])
    if not is_s3(place):
        shutil.rmtree(local_folder(place), ignore_errors=True)


def _entry_removed(view: LakeView, name: str, database: str) -> str | None:
    """Why it stays; empty where it is gone, and None where there was none."""
    try:
        return remove_entry(client("glue"), database, name, table_path(view.lake, name))
    except (ClientError, BotoCoreError) as refused:
        command = f"aws glue delete-table --database-name {shlex.quote(database)} --name {name}"
        return f"{refused}; remove it with `{command}`"


def _busy(what: str) -> str:
    return f"other writers kept changing the {what}, so the drop is unfinished; repeat the command to finish it"
