"""What is kept beside the tables, seen without a JVM: how much of it, why, and the records themselves.

In: a view of the lake, `quarantine` or `parked`, perhaps a table or a reason. Out: plain values, the newest first.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from forebay.operate.lake_view import LakeView

__all__ = ["Kept", "Pile", "kept_records", "piles", "values_in"]

Kept = Literal["quarantine", "parked"]


@dataclass(frozen=True)
class Pile:
    """Records that were kept for the same reason; without a table where none was named, `files` of them whole files."""

    table: str | None
    reason: str | None
    records: int
    files: int
    newest: datetime


def piles(view: LakeView, kept: Kept) -> list[Pile]:
    rows = view.query(
        f"_forebay/{kept}",
        'select "table", reason, count(line) records, count(*) - count(line) files, max(at) newest from t '
        'group by "table", reason order by newest desc, records desc, "table", reason',
    )
    return [Pile(row["table"], row["reason"], row["records"], row["files"], row["newest"]) for row in rows]


def kept_records(
    view: LakeView, kept: Kept, *, table: str | None = None, reason: str | None = None, limit: int = 20
) -> list[dict[str, Any]]:
    chosen = {'"table"': table, "reason": reason}
    conditions = [f"{column} = {_quoted(value)}" for column, value in chosen.items() if value is not None]
    where = f"where {' and '.join(conditions)}" if conditions else ""
    columns = 'at, bucket, key, line, "table", reason, detail, record'
    sql = f"select {columns} from t {where} order by at desc, key, byte_offset limit {limit}"
    return view.query(f"_forebay/{kept}", sql)


def values_in(view: LakeView, kept: Kept, field: str, *, limit: int) -> Counter[str | None]:
    """How many of the newest records have which value of a field, dotted where it is nested; None where they have none."""
    rows = view.query(f"_forebay/{kept}", f"select record from t where line is not null order by at desc limit {limit}")
    return Counter(_value(row["record"], field.split(".")) for row in rows)


def _value(record: str | None, path: Sequence[str]) -> str | None:
    try:
        found = json.loads(record or "null")
    except ValueError:
        return None
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str | None) else json.dumps(found)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
