"""The content of a report: the present state, and for each hour the files and their outcomes. No JVM.

In: a view of the lake, a status, the tables' health, and a span. Out: a `Page`. Two scans of the ledger's columns, within the
days of the span.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from forebay.counted import counted
from forebay.lake.health import Health
from forebay.lake.layout import LEDGER
from forebay.lake.paused import ALL
from forebay.operate.lake_view import LakeView
from forebay.operate.looking.held import piles
from forebay.operate.looking.status import Status
from forebay.operate.page.content import Chart, Page, Reason, Station, TableLine, age, span

HOUR = timedelta(hours=1)


def report_of(view: LakeView, status: Status, health: Sequence[Health], *, hours: int) -> Page:
    """The last hours until now; the tables with most rows first."""
    newest = status.at.replace(minute=0, second=0, microsecond=0)
    hours_of = [newest - HOUR * n for n in reversed(range(hours))]
    since = f"day >= date '{hours_of[0].date()}' and committed_at >= timestamp '{hours_of[0].isoformat()}'"
    reasons = [
        Reason(one.reason or "-", one.records + one.whole_files, one.table or "", one.newest)
        for one in piles(view, "quarantine")
    ]
    return Page(
        view.lake,
        status.at,
        tuple(status.problems),
        tuple(_notes(status)),
        tuple(_journey(status)),
        tuple(_charts(view, hours_of, since)),
        tuple(_tables(view, status, health, hours_of, since)),
        tuple(sorted(reasons, key=lambda one: -one.records)),
        status.runs_of_jobs,
        status.cost,
        _counts(status),
    )


def _notes(status: Status) -> Iterator[str]:
    if status.queue is None:
        yield "The queue is not shown: name it with --queue-url or --stack."
    if status.alarms is None:
        yield "Alarms, runs of jobs and the cost are not shown: name the deployment with --stack."


def _journey(status: Status) -> Iterator[Station]:
    queue, dead = status.queue, status.dead
    if queue is None:
        yield Station("queue", "unknown")
    else:
        oldest = f"the oldest for {span(queue.oldest_s)}; " if queue.oldest_s is not None else ""
        yield Station("messages in the queue", f"{queue.waiting:,}", f"{oldest}{queue.in_flight:,} in flight")
    batch = f"last batch {age(status.at, status.batch.at)}" if status.batch else "no batch yet"
    yield Station("ingest job", "runs" if status.runs else "not running", batch)
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(status.today.items()))
    yield Station("files today", f"{sum(status.today.values()):,}", outcomes or "none")
    yield Station("records today", f"{status.records_today:,}", counted(status.tables, "table"))
    if dead is not None:
        letters = dead.waiting + dead.in_flight
        yield Station(
            "dead letters",
            f"{letters:,}",
            "not understood, or received too often" if letters else "",
            is_bad=letters > 0,
            is_end=True,
        )


def _counts(status: Status) -> dict[str, str]:
    counted = {
        "files ever": status.files,
        "quarantined": status.quarantined,
        "parked": status.parked,
        "not understood": status.refused,
        "rows of paused tables": sum(status.paused.values()),
        "waiting for a replay": status.replays,
        "waiting to be forgotten": status.forgets,
    }
    shown = {name: f"{count:,}" for name, count in counted.items()}
    found = status.reconciled
    return {**shown, "never announced": f"{found.missed:,}" if found else "unknown"}


def _charts(view: LakeView, hours: list[datetime], since: str) -> Iterator[Chart]:
    waited = "cast(extract(epoch from committed_at) - extract(epoch from event_time) as double)"
    sql = (
        "select date_trunc('hour', committed_at) at, count(*) files, sum(records) records, "
        f"approx_percentile_cont({waited}, 0.5) p50, max({waited}) worst "
        f"from t where {since} and outcome = 'loaded' group by 1"
    )
    found: dict[datetime, dict[str, Any]] = {row["at"]: row for row in view.query(LEDGER, sql)}

    def values(name: str) -> tuple[tuple[datetime, float], ...]:
        return tuple((at, float(found.get(at, {}).get(name) or 0)) for at in hours)

    yield Chart("Records loaded", values("records"))
    yield Chart("Files loaded", values("files"))
    worst = max((value for _, value in values("worst")), default=0)
    yield Chart("Latency", values("p50"), "{:,.0f} s", f"the median; the slowest file took {span(worst)}")


def _tables(
    view: LakeView, status: Status, health: Sequence[Health], hours: list[datetime], since: str
) -> list[TableLine]:
    pairs = "unnest(map_keys(tables)) name, unnest(map_values(tables)) n"
    inner = f"select date_trunc('hour', committed_at) at, {pairs} from t where {since}"
    rows: dict[str, dict[datetime, int]] = {}
    for row in view.query(LEDGER, f"select at, name, sum(n) n from ({inner}) x group by at, name"):
        rows.setdefault(row["name"], {})[row["at"]] = row["n"]
    known = {one.table: one for one in health}
    made = [_line(name, rows.get(name, {}), known.get(name), status, hours) for name in {*rows, *known}]
    return sorted(made, key=lambda one: (-sum(one.rows), one.name))


def _line(
    name: str, rows: dict[datetime, int], health: Health | None, status: Status, hours: list[datetime]
) -> TableLine:
    paused = name in status.now_paused or ALL in status.now_paused
    return TableLine(
        name,
        tuple(rows.get(at, 0) for at in hours),
        health.files if health else None,
        health.small_files if health else None,
        health.bytes if health else None,
        status.newest_rows.get(name),
        "paused" if paused else "failed" if name in status.failed else "",
    )
