"""A page as HTML: one file with its pictures in it. It needs no network, runs no script, and fits a phone.

In: a `Page`. Out: HTML. Names of tables, jobs and errors stay text. Colours follow the reader's light or dark theme. For a
person in a hurry: the first line says whether somebody must act. The reasons follow, then the journey of the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from html import escape
from itertools import groupby

from forebay.operate.page.content import Chart, Cost, Page, Reason, Run, Station, TableLine, age, size, span
from forebay.operate.page.pictures import bars, sparkline
from forebay.operate.page.style import STYLE

MOST_TABLES, TABLES_AT_ONCE, MOST_REASONS = 500, 20, 50


def render(page: Page) -> str:
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(page.title)}</title><style>{STYLE}</style></head><body>",
        f'<h1>{escape(page.name)}</h1><p class="quiet">as of {page.at:%Y-%m-%d %H:%M} UTC</p>',
        *_verdict(page),
        *_journey(page),
        *_charts(page.charts),
        *_tables(page.tables, page.at),
        *_reasons(page.reasons),
        *_jobs(page.runs, page.at),
        *_cost(page.cost),
        "</body></html>",
    ]
    return "\n".join(parts)


def _verdict(page: Page) -> Iterator[str]:
    if page.troubles:
        many = "One thing" if len(page.troubles) == 1 else f"{len(page.troubles):,} things"
        yield f'<div class="verdict bad"><b>{many} to look at.</b><ul>'
        yield from (f"<li>{escape(one)}</li>" for one in page.troubles)
        yield "</ul></div>"
    else:
        yield '<div class="verdict"><b>All is well.</b>No action is needed.</div>'
    yield from (f'<p class="quiet">{escape(note)}</p>' for note in page.notes)


def _journey(page: Page) -> Iterator[str]:
    yield '<h2>The journey of the files</h2><ol class="journey">'
    yield from map(_station, page.journey)
    yield "</ol>"
    if page.counts:
        yield "<dl>"
        yield from (
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in page.counts.items()
        )
        yield "</dl>"


def _station(one: Station) -> str:
    number = f'<b class="bad">{escape(one.number)}</b>' if one.is_bad else f"<b>{escape(one.number)}</b>"
    how = ' class="apart"' if one.is_end else ""
    says = f'<span class="quiet">{escape(one.says)}</span>'
    return f'<li{how}><span class="quiet">{escape(one.name)}</span>{number}{says}</li>'


def _charts(charts: Sequence[Chart]) -> Iterator[str]:
    if not charts:
        return
    yield '<div class="charts">'
    for chart in charts:
        highest = max((value for _, value in chart.values), default=0)
        says = chart.says or f"at most {chart.form.format(highest)} in an hour"
        yield f'<div><h2>{escape(chart.title)} <span class="quiet">{escape(says)}</span></h2>{bars(chart)}'
        if chart.values:
            began, ended = chart.values[0][0], chart.values[-1][0]
            yield f'<p class="quiet">{began:%m-%d %H:00} to {ended:%m-%d %H:00} UTC</p>'
        yield "</div>"
    yield "</div>"


def _tables(tables: Sequence[TableLine], now: datetime) -> Iterator[str]:
    heads = ("table", "rows by hour", ">rows", "newest rows", ">files", ">small", ">size")
    yield f"<h2>Tables ({len(tables):,})</h2>"
    rows = [_table_row(table, now) for table in tables[:MOST_TABLES]]
    yield _grid(heads, rows[:TABLES_AT_ONCE])
    if len(rows) > TABLES_AT_ONCE:
        yield f"<details><summary>{len(rows) - TABLES_AT_ONCE:,} more</summary>{_grid(heads, rows[TABLES_AT_ONCE:])}</details>"
    if len(rows) < len(tables):
        yield f'<p class="quiet">The first {MOST_TABLES:,}.</p>'


def _table_row(table: TableLine, now: datetime) -> Sequence[str]:
    state = f' <span class="bad">{escape(table.state)}</span>' if table.state else ""
    newest = age(now, table.newest_at) if table.newest_at else "&ndash;"
    counts = ["&ndash;" if one is None else f"{one:,}" for one in (table.files, table.small_files)]
    rows = f"{sum(table.rows):,}" if table.rows else "&ndash;"
    drawn = sparkline(table.rows) if table.rows else ""
    held = "&ndash;" if table.bytes is None else size(table.bytes)
    return f"{escape(table.name)}{state}", drawn, rows, newest, *counts, held


def _reasons(reasons: Sequence[Reason]) -> Iterator[str]:
    rows = [
        (
            escape(one.reason),
            escape(one.table) or "&ndash;",
            f"{one.records:,}",
            f"{one.newest_at:%m-%d %H:%M}" if one.newest_at else "&ndash;",
        )
        for one in reasons[:MOST_REASONS]
    ]
    yield "<h2>Quarantine</h2>"
    yield _grid(("reason", "table", ">records", "newest"), rows)


def _jobs(runs: Sequence[Run] | None, now: datetime) -> Iterator[str]:
    if runs is None:
        return
    heads = ("job", "last run", "began", ">took", "before that")
    order = list(dict.fromkeys(run.job for run in runs))
    newest_first = sorted(runs, key=lambda run: (order.index(run.job), -run.began_at.timestamp()))
    body = "".join(_job_row(list(group), now) for _, group in groupby(newest_first, key=lambda run: run.job))
    yield f"<h2>Jobs</h2>{_table(heads, body)}"


def _job_row(runs: Sequence[Run], now: datetime) -> str:
    newest, *earlier = runs
    before = ", ".join(map(_state, earlier)) or "&ndash;"
    row = _row(
        ("", "", "", "number", ""),
        (escape(newest.job), _state(newest), age(now, newest.began_at), span(newest.seconds), before),
    )
    # Shown as long as it counts: also of the run before one that is at work.
    last = next(iter(earlier), newest) if newest.is_at_work else newest
    if last.is_bad and last.error:
        row += f'<tr><td class="error" colspan="5">{escape(last.error[:500])}</td></tr>'
    return row


def _state(run: Run) -> str:
    how = "bad" if run.is_bad else "quiet" if run.is_at_work else "good"
    return f'<span class="{how}">{escape(run.state.lower())}</span>'


def _cost(cost: Cost | None) -> Iterator[str]:
    if cost is None:
        return
    yield f'<h2>Cost of this month so far <span class="quiet">{cost.total:,.2f} USD</span></h2>'
    yield _grid(("part", ">USD"), [(escape(part), f"{usd:,.2f}") for part, usd in cost.usd.items()])
    yield f'<p class="quiet">{escape(cost.says)}</p>'


def _grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """`>name` heads a column of numbers. Cells are HTML."""
    kinds = ["number" if head.startswith(">") else "" for head in heads]
    return _table(heads, "".join(_row(kinds, row) for row in rows))


def _table(heads: Sequence[str], body: str) -> str:
    ths = "".join(f'<th class="{"number" if head.startswith(">") else ""}">{head.lstrip(">")}</th>' for head in heads)
    body = body or f'<tr><td class="quiet" colspan="{len(heads)}">none</td></tr>'
    return f'<div class="scroll"><table><thead><tr>{ths}</tr></thead><tbody>{body}</tbody></table></div>'


def _row(kinds: Sequence[str], cells: Sequence[str]) -> str:
    tds = "".join(f'<td class="{kind}">{cell}</td>' for kind, cell in zip(kinds, cells, strict=True))
    return f"<tr>{tds}</tr>"
