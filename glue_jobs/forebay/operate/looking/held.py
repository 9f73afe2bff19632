"""The quarantine and the parked records, read without a JVM: their number, the reasons, and the records themselves.

In: a view of the lake, `quarantine` or `parked`, perhaps a table or a reason. Out: plain values, the newest first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from forebay.batch.reasons import REASONS
from forebay.declaration import object_key
from forebay.declaration.path import parse_path
from forebay.errors import InvalidConfiguration, meant
from forebay.lake.layout import QUARANTINE, own_table
from forebay.operate.lake_view import LakeView, quoted
from forebay.record.number import read_json
from forebay.record.route import Origin, text_of

if TYPE_CHECKING:
    from forebay.declaration.service import Service

Held = Literal["quarantine", "parked"]


@dataclass(frozen=True)
class Pile:
    """Records that were held for the same reason, and the `files` that they came from; `whole_files` could not be read at
    all. Without a table where none was named."""

    table: str | None
    reason: str | None
    records: int
    files: int
    whole_files: int
    newest: datetime


@dataclass(frozen=True)
class Waiting:
    """Rows of one table that are in the quarantine because nothing could be written to it; and the newest cause, if it is
    known."""

    rows: int
    cause: str | None = None


def waiting_for(view: LakeView, reason: str) -> dict[str, Waiting]:
    """By table, for one of the reasons that concern whole tables."""
    newest = "first_value(detail order by at desc)"
    sql = f'select "table", count(line) n, {newest} cause from t where reason = {quoted(reason)} group by "table"'
    return {row["table"]: Waiting(row["n"], row["cause"]) for row in view.query(QUARANTINE, sql) if row["table"]}


def piles(view: LakeView, held: Held) -> list[Pile]:
    rows = view.query(
        own_table(held),
        'select "table", reason, count(line) records, count(distinct file_id) files, '
        "count(*) - count(line) whole_files, max(at) newest from t "
        'group by "table", reason order by newest desc, records desc, "table", reason',
    )
    return [Pile(**row) for row in rows]


def held_records(
    view: LakeView, held: Held, *, table: str | None = None, reason: str | None = None, limit: int = 20
) -> list[dict[str, Any]]:
    where = _where(table, reason)
    columns = 'at, bucket, key, line, "table", reason, detail, record'
    sql = f"select {columns} from t {where} order by at desc, key, byte_offset limit {limit}"
    return view.query(own_table(held), sql)


def known_reason(view: LakeView, held: Held, reason: str) -> str:
    """The reason, if there is such a one, or something was held for it; else `InvalidConfiguration`."""
    known = {*REASONS, *(row["reason"] for row in view.query(own_table(held), "select distinct reason from t"))} - {
        None
    }
    if reason not in known:
        hint = meant(reason, known, f"`forebay {held} list` lists the existing ones")
        raise InvalidConfiguration.one(f"--reason {reason}", "is not a reason", hint)
    return reason


def chosen_of(view: LakeView, held: Held, service: str, *, table: str | None, reason: str | None) -> int:
    """Counts the chosen records of this service. If all of them belong to another service, the caller meant that service's
    declarations: `InvalidConfiguration`."""
    where = _where(table if held == "quarantine" else None, reason)
    sql = f"select service, count(line) n from t {where} group by service order by n desc"
    found = {row["service"]: row["n"] for row in view.query(own_table(held), sql) if row["n"]}
    if found and service not in found:
        others = ", ".join(f"{count:,} of service {name}" for name, count in found.items())
        hint = f"name the declarations of that service with --service; the {held} has {others}"
        raise InvalidConfiguration.one(f"service {service}", f"none of these records in the {held} belong to it", hint)
    count: int = found.get(service, 0)
    return count


def values_in(view: LakeView, held: Held, field: str, *, limit: int, service: Service) -> Counter[str | None]:
    """Counts the newest records by their value of a field; None for those without it. The service says
    which parts a key has, and which feeds there are."""
    read = _reader(field, service)
    rows = view.query(own_table(held), f"select * from t where line is not null order by at desc limit {limit}")
    return Counter(map(read, rows))


def _reader(field: str, service: Service) -> Callable[[Mapping[str, Any]], str | None]:
    try:
        path = parse_path(field)
    except ValueError as mistake:
        raise InvalidConfiguration.one("--by", str(mistake)) from None
    templates = [feed.key for feed in service.all_feeds if feed.key]
    if path.origin == "key" and path.steps[0] not in {name for each in templates for name in object_key.names(each)}:
        of_key = f"the declared `key` is {' or '.join(map(repr, templates))}" if templates else "no `key` is declared"
        raise InvalidConfiguration.one(
            f"--by {field}", "is not part of the key", f"{of_key}; name the declarations with --service"
        )
    return lambda row: text_of(
        service,
        field,
        _value(row["record"]) if path.of_record else None,
        Origin(row["key"], row["bucket"], _value(row.get("metadata")) or {}),
    )


def _value(text: str | None) -> Any:
    try:
        return read_json(text or "null")
    except ValueError:
        return None


def _where(table: str | None, reason: str | None) -> str:
    chosen = {'"table"': table, "reason": reason}
    conditions = [f"{column} = {quoted(value)}" for column, value in chosen.items() if value is not None]
    return f"where {' and '.join(conditions)}" if conditions else ""
