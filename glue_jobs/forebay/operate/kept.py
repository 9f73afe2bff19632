"""What is kept beside the tables, seen without a JVM: how much of it, why, and the records themselves.

In: a view of the lake, `quarantine` or `parked`, perhaps a table or a reason. Out: plain values, the newest first.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from forebay.operate.lake_view import LakeView

__all__ = ["Kept", "Pile", "kept_records", "piles"]

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
    sql = f"select {columns} from t {where} order by at desc, key, line limit {limit}"
    return view.query(f"_forebay/{kept}", sql)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
