"""What a report is made of: how it is going now, and hour by hour what came and where it went. No JVM.

In: a view of the lake, a status, and a span. Out: a `Report`, plain values; `report_page` makes a page of it. Two scans of the
ledger's columns, within the days of the span, and one small object for each table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from forebay.lake.health import Health
from forebay.lake.layout import LEDGER
from forebay.operate.held import Pile, piles
from forebay.operate.lake_view import LakeView
from forebay.operate.status import Status, health_objects

__all__ = ["Hour", "Report", "TableHours", "report_of"]

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Hour:
    """What batches of this hour loaded. Latency is from S3's clock to the ledger's commit."""

    at: datetime
    files: int = 0
    records: int = 0
    latency_p50_s: float = 0
    latency_max_s: float = 0


@dataclass(frozen=True)
class TableHours:
    """Rows by hour, as many numbers as the report has hours; `health` as far as its object knows."""

    name: str
    rows: tuple[int, ...]
    health: Health | None = None


@dataclass(frozen=True)
class Report:
    lake: str
    status: Status
    hours: tuple[Hour, ...]
    tables: tuple[TableHours, ...]
    quarantine: tuple[Pile, ...]


def report_of(view: LakeView, status: Status, *, hours: int) -> Report:
    """The last hours until now; the tables with most rows first."""
    newest = status.at.replace(minute=0, second=0, microsecond=0)
    span = [newest - HOUR * n for n in reversed(range(hours))]
    since = f"day >= date '{span[0].date()}' and committed_at >= timestamp '{span[0].isoformat()}'"
    return Report(
        view.lake, status, _hours(view, span, since), _tables(view, span, since), tuple(piles(view, "quarantine"))
    )


def _hours(view: LakeView, span: list[datetime], since: str) -> tuple[Hour, ...]:
    waited = "cast(extract(epoch from committed_at) - extract(epoch from event_time) as double)"
    sql = (
        "select date_trunc('hour', committed_at) at, count(*) files, sum(records) records, "
        f"approx_percentile_cont({waited}, 0.5) p50, max({waited}) worst from t where {since} group by 1"
    )
    found = {
        row["at"]: Hour(row["at"], row["files"], row["records"], row["p50"] or 0, row["worst"] or 0)
        for row in view.query(LEDGER, sql)
    }
    return tuple(found.get(at, Hour(at)) for at in span)


def _tables(view: LakeView, span: list[datetime], since: str) -> tuple[TableHours, ...]:
    pairs = "unnest(map_keys(tables)) name, unnest(map_values(tables)) n"
    inner = f"select date_trunc('hour', committed_at) at, {pairs} from t where {since}"
    rows: dict[str, dict[datetime, int]] = {}
    for row in view.query(LEDGER, f"select at, name, sum(n) n from ({inner}) x group by at, name"):
        rows.setdefault(row["name"], {})[row["at"]] = row["n"]
    known: Mapping[str, Health] = {one.table: one for one in health_objects(view.lake)}
    made = [
        TableHours(name, tuple(rows.get(name, {}).get(at, 0) for at in span), known.get(name))
        for name in {*rows, *known}
    ]
    return tuple(sorted(made, key=lambda one: (-sum(one.rows), one.name)))
