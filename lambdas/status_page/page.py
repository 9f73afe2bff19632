"""The page: a `State` in, HTML out. Whatever a table or an error is called stays text.

For a person in a hurry. The first line says whether somebody must act, and in which order. Below it is why, a job a line,
then the tables with the most small files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from itertools import groupby
from typing import Any

__all__ = ["Alarm", "Run", "State", "Table", "page"]

STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; --bad: #c62828; --good: #2e7d32 }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --good: #81c784 } }
body { max-width: 62rem; margin: 1.5rem auto; padding: 0 1rem }
h1 { font-size: 1.3rem; margin: 0 } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem } p { margin: .2rem 0 }
.verdict { border-left: .4rem solid var(--good); padding: .5rem 0 .5rem .9rem; margin: 1rem 0; font-size: 1.1rem }
.verdict.bad { border-color: var(--bad); color: inherit; font-weight: 400 } .verdict b { display: block; font-size: 1.4rem }
.verdict b { color: var(--good) } .verdict.bad b { color: var(--bad) } ul { margin: .3rem 0; padding-left: 1.2rem }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(8rem, 1fr)); gap: 1rem; margin: 0 }
dt { opacity: .7 } dd { margin: 0; font-size: 1.5rem; font-variant-numeric: tabular-nums }
table { border-collapse: collapse; width: 100% } .scroll { overflow-x: auto }
th, td { padding: .3rem .8rem .3rem 0; text-align: left; border-bottom: 1px solid #8884; white-space: nowrap }
th { font-weight: 400; opacity: .7 } .number { text-align: right; font-variant-numeric: tabular-nums }
td.error { white-space: normal; overflow-wrap: anywhere; padding-left: 1.2rem; color: var(--bad) }
.bad { color: var(--bad); font-weight: 600 } .good { color: var(--good) } .quiet { opacity: .7 }
details { margin-top: .5rem } summary { cursor: pointer }
"""
MOST_TABLES, TABLES_AT_ONCE = 500, 20
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

    @property
    def how(self) -> str:
        return "bad" if self.state in FAILED else "quiet" if self.state in AT_WORK else "good"


@dataclass(frozen=True)
class Alarm:
    """`says` is a sentence for a person."""

    name: str
    says: str = ""

    @classmethod
    def of(cls, said: dict[str, Any]) -> Alarm:
        return cls(said["AlarmName"], said.get("AlarmDescription", "").partition(" Runbook:")[0])


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
    alarms: tuple[Alarm, ...]
    without_data: int = 0
    """Alarms that call a person, but have nothing to go by yet."""


def page(state: State) -> str:
    worst = sorted(state.tables, key=lambda table: (-table.small_files, table.name))[:MOST_TABLES]
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title(state))}</title><style>{STYLE}</style></head><body>",
        f'<h1>{escape(state.name)}</h1><p class="quiet">as of {state.at:%Y-%m-%d %H:%M} UTC</p>',
        *verdict(state),
        *files(state),
        "<h2>Jobs</h2>",
        grid(("job", "last run", "began", "took", "before that"), job_rows(state)),
        f"<h2>Tables ({len(state.tables):,})</h2>",
        *table_grids(worst, state.at),
        f'<p class="quiet">The {MOST_TABLES} with the most small files.</p>' if len(worst) < len(state.tables) else "",
        "</body></html>",
    ]
    return "\n".join(parts)


def title(state: State) -> str:
    """What the tab of a browser says."""
    return f"{len(troubles(state))} to look at: {state.name}" if troubles(state) else f"well: {state.name}"


def troubles(state: State) -> list[str]:
    """What somebody must look at, each a sentence: alarms first, then what they may not have seen yet."""
    said = [f"{short(alarm.name, state)}: {alarm.says}".rstrip(": ") for alarm in state.alarms]
    if state.dead and not any(alarm.name.endswith(("dead-letters", "undelivered")) for alarm in state.alarms):
        said.append(f"{state.dead:,} messages are dead: taken several times and never finished, or never delivered.")
    said += [f"{short(runs[0].job, state)}: the last run failed." for runs in by_job(state) if runs[0].state in FAILED]
    return said


def short(name: str, state: State) -> str:
    """All names begin with the service's, which stands above them."""
    return name.removeprefix(f"{state.name}-")


def verdict(state: State) -> Iterator[str]:
    found = troubles(state)
    if not found:
        yield '<div class="verdict"><b>All is well.</b>No alarm rings, nothing is dead, no job failed last.</div>'
        if state.without_data:
            yield f'<p class="quiet">Alarms without data yet: {state.without_data:,}.</p>'
        return
    many = "One thing" if len(found) == 1 else f"{len(found)} things"
    yield f'<div class="verdict bad"><b>{many} to look at.</b><ul>'
    yield from (f"<li>{escape(one)}</li>" for one in found)
    yield "</ul></div>"


def files(state: State) -> Iterator[str]:
    batch = age(state.at, state.last_batch) + " ago" if state.last_batch else "none yet"
    dead = f'<span class="bad">{state.dead:,}</span>' if state.dead else "0"
    numbers = {"waiting": f"{state.waiting:,}", "in hand": f"{state.held:,}", "dead": dead, "last batch": batch}
    yield "<h2>Messages on their way</h2><dl>"
    yield from (f"<div><dt>{name}</dt><dd>{number}</dd></div>" for name, number in numbers.items())
    yield "</dl>"


def by_job(state: State) -> list[list[Run]]:
    """Each job's runs, newest first; the jobs in the order in which they were given."""
    order = list(dict.fromkeys(run.job for run in state.runs))
    runs = sorted(state.runs, key=lambda run: (order.index(run.job), -run.began.timestamp()))
    return [list(group) for _, group in groupby(runs, key=lambda run: run.job)]


def job_rows(state: State) -> Iterator[str]:
    for newest, *earlier in by_job(state):
        before = (
            ", ".join(f'<span class="{run.how}">{escape(run.state.lower())}</span>' for run in earlier) or "&ndash;"
        )
        yield (
            f'<tr><td>{escape(short(newest.job, state))}</td><td class="{newest.how}">{escape(newest.state.lower())}</td>'
            f"<td>{age(state.at, newest.began)} ago</td>"
            f'<td class="number">{span(newest.seconds)}</td><td>{before}</td></tr>'
        )
        # Told where it still counts: of the run before one that is at work, too.
        last = newest if newest.state in FAILED else next(iter(earlier), newest) if newest.state in AT_WORK else newest
        if last.state in FAILED and last.error:
            yield f'<tr><td class="error" colspan="5">{escape(last.error[:500])}</td></tr>'


def table_grids(tables: Sequence[Table], now: datetime) -> Iterator[str]:
    heads = ("table", "files", "small", "size", "last rows")
    yield grid(heads, (table_row(table, now) for table in tables[:TABLES_AT_ONCE]))
    if rest := tables[TABLES_AT_ONCE:]:
        yield f"<details><summary>{len(rest):,} more</summary>"
        yield grid(heads, (table_row(table, now) for table in rest))
        yield "</details>"


def grid(heads: Sequence[str], rows: Iterable[str]) -> str:
    numbers = ("files", "small", "size", "took")
    ths = "".join(f'<th class="{"number" if head in numbers else ""}">{head}</th>' for head in heads)
    body = "".join(rows) or f'<tr><td class="quiet" colspan="{len(heads)}">none yet</td></tr>'
    return f'<div class="scroll"><table><thead><tr>{ths}</tr></thead><tbody>{body}</tbody></table></div>'


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
