"""The page: a `State` in, HTML out. Whatever a table or an error is called stays text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any

__all__ = ["Run", "State", "Table", "page"]

STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 68rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem; margin: 0 } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem } p { margin: .2rem 0 }
.scroll { overflow-x: auto } table { border-collapse: collapse; width: 100% }
th, td { padding: .3rem .8rem .3rem 0; text-align: left; border-bottom: 1px solid #8884; white-space: nowrap }
td.wide { white-space: normal; overflow-wrap: anywhere } .number { text-align: right; font-variant-numeric: tabular-nums }
.bad { color: #c62828; font-weight: 600 } .good { color: #2e7d32 } .quiet { opacity: .7 }
@media (prefers-color-scheme: dark) { .bad { color: #ff8a80 } .good { color: #81c784 } }
"""
MOST_TABLES = 500
AT_WORK = ("STARTING", "RUNNING", "STOPPING", "WAITING", "SUBMITTED", "PENDING", "SCHEDULED")
FAILED = ("FAILED", "ERROR", "TIMEOUT")


@dataclass(frozen=True)
class Table:
    name: str
    files: int
    small_files: int
    bytes: int
    newest_at: datetime | None

    @classmethod
    def of(cls, health: dict[str, Any]) -> Table:
        newest = health.get("newest_at")
        files, small, size = (int(health.get(name, 0)) for name in ("files", "small_files", "bytes"))
        return cls(
            str(health.get("table", "?")), files, small, size, datetime.fromisoformat(newest) if newest else None
        )


@dataclass(frozen=True)
class Run:
    job: str
    state: str
    began: datetime
    seconds: float
    error: str

    @classmethod
    def of(cls, job: str, said: dict[str, Any], now: datetime) -> Run:
        began = said["StartedOn"]
        seconds = ((said.get("CompletedOn") or now) - began).total_seconds()
        return cls(job, said["JobRunState"], began, max(0.0, seconds), str(said.get("ErrorMessage", "")))


@dataclass(frozen=True)
class State:
    name: str
    at: datetime
    waiting: int
    held: int
    dead: int
    last_batch: datetime | None
    tables: tuple[Table, ...]
    runs: tuple[Run, ...]
    alarms: tuple[str, ...]


def page(state: State) -> str:
    alarms = [f'<p class="bad">{escape(name)}</p>' for name in state.alarms] or ['<p class="good">No alarm rings.</p>']
    batch = age(state.at, state.last_batch) + " ago" if state.last_batch else "none yet"
    dead = f'<span class="{"bad" if state.dead else "good"}">{state.dead:,}</span>'
    worst = sorted(state.tables, key=lambda table: (-table.small_files, table.name))
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(state.name)}</title><style>{STYLE}</style></head><body>",
        f'<h1>{escape(state.name)}</h1><p class="quiet">as of {state.at:%Y-%m-%d %H:%M} UTC</p>',
        *alarms,
        "<h2>Files on their way</h2>",
        f"<p>{state.waiting:,} messages wait, {state.held:,} are in hand, {dead} are dead. Last batch: {batch}.</p>",
        "<h2>Runs</h2>",
        grid(("job", "state", "began", "took", "error"), map(run_row, sorted(state.runs, key=lambda r: r.began)[::-1])),
        f"<h2>Tables ({len(state.tables):,})</h2>",
        grid(
            ("table", "files", "small", "size", "last rows"),
            (table_row(table, state.at) for table in worst[:MOST_TABLES]),
        ),
        f'<p class="quiet">The {MOST_TABLES} with the most small files.</p>' if len(worst) > MOST_TABLES else "",
        "</body></html>",
    ]
    return "\n".join(parts)


def grid(heads: Sequence[str], rows: Iterable[str]) -> str:
    numbers = ("files", "small", "size", "took")
    ths = "".join(f'<th class="{"number" if head in numbers else ""}">{head}</th>' for head in heads)
    body = "".join(rows) or f'<tr><td class="quiet" colspan="{len(heads)}">none yet</td></tr>'
    return f'<div class="scroll"><table><thead><tr>{ths}</tr></thead><tbody>{body}</tbody></table></div>'


def run_row(run: Run) -> str:
    how = "bad" if run.state in FAILED else "quiet" if run.state in AT_WORK else "good"
    return (
        f'<tr><td>{escape(run.job)}</td><td class="{how}">{escape(run.state)}</td><td>{run.began:%Y-%m-%d %H:%M}</td>'
        f'<td class="number">{span(run.seconds)}</td><td class="wide">{escape(run.error[:500])}</td></tr>'
    )


def table_row(table: Table, now: datetime) -> str:
    newest = f"{age(now, table.newest_at)} ago" if table.newest_at else "unknown"
    numbers = (f"{table.files:,}", f"{table.small_files:,}", size(table.bytes))
    cells = "".join(f'<td class="number">{number}</td>' for number in numbers)
    return f"<tr><td>{escape(table.name)}</td>{cells}<td>{newest}</td></tr>"


def age(now: datetime, then: datetime) -> str:
    return span(max(0.0, (now - then).total_seconds()))


def span(seconds: float) -> str:
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
