"""Prints answers: tables that fit 80 columns, JSON for programs, nothing that scrolls endlessly.

Names, records and messages come from data, so they are never interpreted. Rich's markup is off. Control characters are written
out, because a terminal's commands begin with ESC. On a terminal rich decides about width and colour, and honours NO_COLOR. In
a pipe or a file nothing is wrapped or cut, and there is neither colour nor spinner.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from forebay.counted import counted
from forebay.lake.origin import table_lost

if TYPE_CHECKING:
    from forebay.operate.lake_view import Counted, TableFacts
    from forebay.upkeep.accounts.accounts import Accounts

NONE_ENDED = "no batch has ended yet, so nothing is in the ledger; `forebay status` says what waits and what runs"
UNBOUNDED = 10_000
WIDE = 120
"""Columns from which on a terminal shows everything; below, only what fits."""

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters but tabs and newlines, and those that turn the direction of writing."""

_NOT_ESCAPED = re.compile("[\x7f-\x9f]")
"""Control characters that JSON may hold without an escape."""


def printable(text: str) -> str:
    """The text, with what a terminal might obey written out."""
    return _OBEYED.sub(lambda found: ascii(found[0])[1:-1], text)


def styled(text: str, style: str, rest: str = "") -> Text:
    """The text in a style, then the rest without one."""
    return Text.assemble((printable(text), style), printable(rest))


class _Console(Console):
    """Shows texts unchanged, in tables too."""

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(printable(text), **{**how, "markup": False})


class _Table(Table):
    """Ends each line with its last sign, and not with the blanks of the widest one."""

    past_edge = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        options = options.update(width=UNBOUNDED) if self.past_edge else options
        segments = (one for one in super().__rich_console__(console, options) if isinstance(one, Segment))
        for line in Segment.split_lines(segments):
            while line and not line[-1].text.strip():
                line.pop()
            if line:
                last = line.pop()
                line.append(Segment(last.text.rstrip(), last.style))
            yield from (*line, Segment.line())


def _console(stream: TextIO, *, stderr: bool = False) -> Console:
    width = None if stream.isatty() else UNBOUNDED
    return _Console(stderr=stderr, highlight=False, markup=False, width=width, soft_wrap=True)


console = _console(sys.stdout)
error_console = _console(sys.stderr, stderr=True)


def columns(*names: str) -> Table:
    """An empty table of these columns; `>name` is a number's, and `=name` another that is never broken into two lines.
    `~name` is for the last one: it goes past the edge, so that an address can be copied."""
    table = _Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        right, whole = name.startswith(">"), name.startswith((">", "="))
        shown = name.lstrip(">=~")
        table.past_edge = name.startswith("~")
        table.add_column(shown, justify="right" if right else "left", overflow="fold", no_wrap=whole)
    return table


def is_wide() -> bool:
    """Whether there is room for everything: in a pipe always."""
    return console.width >= WIDE


def print_json(rows: Iterable[Mapping[str, Any]]) -> None:
    """One object a line. Times are ISO 8601, and values that JSON lacks, such as NaN, are text."""
    for row in rows:
        text = json.dumps(row, default=_plain, ensure_ascii=False)
        if "NaN" in text or "Infinity" in text:
            text = json.dumps(json.loads(text, parse_constant=str), ensure_ascii=False)
        print(_NOT_ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def at(moment: datetime | None) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S") if moment else "-"


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, date) else str(value)


def show_tables(facts: Iterable[TableFacts]) -> None:
    wide = is_wide()
    table = columns("table", ">rows", ">files", *((">bytes", ">version") if wide else ()), "=newest event")
    for f in facts:
        more = (size(f.bytes), str(f.version)) if wide else ()
        table.add_row(f.name, f"{f.rows:,}", f"{f.files:,}", *more, at(f.newest))
    console.print(table)


def show_lost(lost: Mapping[str, Counted]) -> None:
    """Shows tables that are lost, and what the ledger counts of each."""
    for name, its in lost.items():
        error_console.print(styled(f"{name}:", "red", f" {table_lost(name, its.rows, its.replayed)}"))


def show_accounts(sums: Accounts, *, files_put: int | None = None) -> list[str]:
    """Shows the sums; gives those that do not hold."""
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(sums.files.items())) or "none"
    put = f"{files_put:,} put = " if files_put is not None else ""
    console.print(f"files    {put}{sums.all_files:,} in the ledger ({outcomes})")
    console.print(
        f"records  {sums.records:,} read = {sums.written:,} written + {sums.quarantined:,} quarantined"
        f" + {sums.parked:,} parked + {sums.dropped:,} dropped"
    )
    for batch in sums.open:
        console.print(f"open     {batch}: not counted. The running job finishes it, or the next start")
    wrong = sums.differences()
    if files_put is not None and files_put != sums.all_files:
        wrong.insert(0, f"{counted(files_put, 'file', 'was')} put, the ledger has {sums.all_files}")
    for difference in wrong:
        error_console.print(styled("does not add up:", "red", f" {difference}"))
    if not wrong:
        but = "; files of the open batch were left out" if sums.open else ""
        console.print(styled("all sums hold", "green", f", counted in the ledger and again in the tables{but}"))
    return wrong


def size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
