"""The report as a page: one file of HTML with its pictures in it. It needs no network, runs no script, and fits a phone.

In: a `Report`. Out: HTML. Whatever a table or a job is called stays text. Colours follow the reader's light or dark theme.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from html import escape

from forebay.operate.held import Pile
from forebay.operate.report import Report, TableHours

__all__ = ["page"]

STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; --bad: #c62828; --good: #2e7d32; --ink: #1565c0 }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --good: #81c784; --ink: #90caf9 } }
body { max-width: 62rem; margin: 1.5rem auto; padding: 0 1rem }
h1 { font-size: 1.3rem; margin: 0; overflow-wrap: anywhere } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem }
.verdict { border-left: .4rem solid var(--good); padding: .5rem 0 .5rem .9rem; margin: 1rem 0; font-size: 1.1rem }
.verdict.bad { border-color: var(--bad) } .verdict b { display: block; font-size: 1.4rem; color: var(--good) }
.verdict.bad b { color: var(--bad) } ul { margin: .3rem 0; padding-left: 1.2rem; overflow-wrap: anywhere }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); gap: 1rem; margin: 0 }
dt, th, .quiet { opacity: .7 } dd { margin: 0; font-size: 1.4rem; font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
.scroll { overflow-x: auto } table { border-collapse: collapse; width: 100% }
th, td { padding: .3rem .8rem .3rem 0; text-align: left; border-bottom: 1px solid #8884; white-space: nowrap; font-weight: 400 }
td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 7rem } h2 .quiet { font-weight: 400 }
.number { text-align: right; font-variant-numeric: tabular-nums }
svg { display: block; width: 100%; height: auto } td svg { width: 8rem } svg .mark { fill: var(--ink) }
svg .line { fill: none; stroke: var(--ink); stroke-width: 1.5 } svg .base { stroke: #8888 }
"""
MOST_TABLES = 200
WIDTH, HEIGHT = 600, 90


def page(report: Report) -> str:
    shown = report.tables[:MOST_TABLES]
    problems = report.status.problems
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{len(problems) or 'nothing'} to look at: {escape(report.lake)}</title><style>{STYLE}</style></head><body>",
        f'<h1>{escape(report.lake)}</h1><p class="quiet">as of {report.status.at:%Y-%m-%d %H:%M} UTC</p>',
        *_verdict(problems),
        "<h2>Now</h2>",
        *_now(report),
        *_chart("Records loaded", [(hour.at, hour.records) for hour in report.hours], "{:,.0f}"),
        *_chart("Files loaded", [(hour.at, hour.files) for hour in report.hours], "{:,.0f}"),
        *_chart(
            "Latency, the median of each hour", [(hour.at, hour.latency_p50_s) for hour in report.hours], "{:,.0f} s"
        ),
        f"<h2>Tables ({len(report.tables):,})</h2>",
        _grid(("table", "rows by hour", ">rows", ">files", ">small", "newest rows"), map(_table_row, shown)),
        f'<p class="quiet">The {MOST_TABLES} with most rows.</p>' if len(shown) < len(report.tables) else "",
        "<h2>Quarantine</h2>",
        _grid(("table", "reason", ">records", ">whole files", "newest"), map(_pile_row, report.quarantine)),
        "</body></html>",
    ]
    return "\n".join(parts)


def _verdict(problems: Sequence[str]) -> Iterator[str]:
    if not problems:
        yield '<div class="verdict"><b>Nothing to look at.</b>No table failed, and nothing is dead.</div>'
        return
    yield f'<div class="verdict bad"><b>{len(problems):,} to look at.</b><ul>'
    yield from (f"<li>{escape(one)}</li>" for one in problems)
    yield "</ul></div>"


def _now(report: Report) -> Iterator[str]:
    now = report.status
    batch = f"{now.batch.at:%m-%d %H:%M}" if now.batch else "none yet"
    numbers = {
        "waiting in the queue": "unknown" if now.queue is None else f"{now.queue.waiting:,}",
        "dead letters": "unknown" if now.dead is None else f"{now.dead.waiting + now.dead.in_flight:,}",
        "job": "runs" if now.runs else "none runs",
        "last batch": batch,
        "files today": f"{sum(now.today.values()):,}",
        "records today": f"{now.records_today:,}",
        "files ever": f"{now.files:,}",
        "quarantined": f"{now.quarantined:,}",
        "parked": f"{now.parked:,}",
        "rows of paused tables": f"{sum(now.paused.values()):,}",
        "waiting for a replay": f"{now.replays:,}",
    }
    yield "<dl>"
    yield from (f"<div><dt>{name}</dt><dd>{escape(number)}</dd></div>" for name, number in numbers.items())
    yield "</dl>"


def _chart(title: str, values: Sequence[tuple[datetime, float]], said: str) -> Iterator[str]:
    """Bars, one an hour; a bar says its number when it is touched."""
    highest = max((value for _, value in values), default=0)
    step = WIDTH / max(1, len(values))
    yield f'<h2>{title} <span class="quiet">at most {said.format(highest)} in an hour</span></h2>'
    yield f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title} by hour">'
    for n, (at, value) in enumerate(values):
        height = (HEIGHT - 2) * value / highest if highest else 0
        box = f'x="{n * step:.1f}" y="{HEIGHT - 1 - height:.1f}" width="{max(1.0, step - 2):.1f}" height="{height:.1f}"'
        yield f'<rect class="mark" {box}><title>{at:%m-%d %H:00}: {said.format(value)}</title></rect>'
    yield f'<line class="base" x1="0" x2="{WIDTH}" y1="{HEIGHT - 1}" y2="{HEIGHT - 1}"/></svg>'
    if values:
        yield f'<p class="quiet">{values[0][0]:%m-%d %H:00} to {values[-1][0]:%m-%d %H:00} UTC</p>'


def _table_row(table: TableHours) -> tuple[str, ...]:
    health = table.health
    newest = f"{health.newest_at:%m-%d %H:%M}" if health is not None and health.newest_at else "unknown"
    counts = (f"{health.files:,}", f"{health.small_files:,}") if health is not None else ("unknown", "unknown")
    return escape(table.name), _sparkline(table.rows), f"{sum(table.rows):,}", *counts, newest


def _sparkline(values: Sequence[int]) -> str:
    highest, step = max(values, default=0) or 1, 120 / max(1, len(values) - 1)
    points = " ".join(f"{n * step:.1f},{23 - 22 * value / highest:.1f}" for n, value in enumerate(values))
    return f'<svg viewBox="0 0 120 24" role="img" aria-label="rows by hour"><polyline class="line" points="{points}"/></svg>'


def _pile_row(pile: Pile) -> tuple[str, ...]:
    numbers = (f"{pile.records:,}", f"{pile.whole_files:,}")
    return escape(pile.table or "-"), escape(pile.reason or "-"), *numbers, f"{pile.newest:%m-%d %H:%M}"


def _grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """`>name` heads a column of numbers."""
    kinds = ["number" if head.startswith(">") else "" for head in heads]
    ths = "".join(f'<th class="{kind}">{head.lstrip(">")}</th>' for kind, head in zip(kinds, heads, strict=True))
    trs = ["".join(f'<td class="{kind}">{cell}</td>' for kind, cell in zip(kinds, row, strict=True)) for row in rows]
    body = (
        "".join(f"<tr>{cells}</tr>" for cells in trs) or f'<tr><td class="quiet" colspan="{len(heads)}">none</td></tr>'
    )
    return f'<div class="scroll"><table><thead><tr>{ths}</tr></thead><tbody>{body}</tbody></table></div>'
