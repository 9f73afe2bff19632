"""How answers look: tables that can be read at 80 columns, JSON for machines, nothing that scrolls for ever.

On a terminal rich decides about width and colour, and honours NO_COLOR. In a pipe or a file a line is as long as it is: nothing
is wrapped or cut, and there is neither colour nor spinner.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from forebay.operate.accounts import Accounts
    from forebay.operate.lake_view import TableFacts

__all__ = ["at", "columns", "console", "error_console", "print_json", "show_accounts", "show_tables", "size"]

UNBOUNDED = 10_000


def _console(stream: TextIO, *, stderr: bool = False) -> Console:
    return Console(stderr=stderr, highlight=False, width=None if stream.isatty() else UNBOUNDED, soft_wrap=True)


console = _console(sys.stdout)
error_console = _console(sys.stderr, stderr=True)


def columns(*names: str) -> Table:
    """An empty table of these columns; `>name` is a number's."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name.removeprefix(">"), justify="right" if name.startswith(">") else "left", overflow="fold")
    return table


def print_json(rows: Iterable[Mapping[str, Any]]) -> None:
    """One object a line; moments as ISO 8601."""
    for row in rows:
        print(json.dumps(row, default=_plain, ensure_ascii=False))


def at(moment: datetime | None) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S") if moment else "-"


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, date) else str(value)


def show_tables(facts: Iterable[TableFacts]) -> None:
    table = columns("table", ">rows", ">files", ">bytes", ">version", "newest event")
    for f in facts:
        table.add_row(f.name, f"{f.rows:,}", f"{f.files:,}", size(f.bytes), str(f.version), at(f.newest))
    console.print(table)


def show_accounts(sums: Accounts, *, files_put: int | None = None) -> list[str]:
    """Shows the sums; gives those that do not hold."""
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(sums.files.items())) or "none"
    put = f"{files_put:,} put = " if files_put is not None else ""
    console.print(f"files    {put}{sums.all_files:,} in the ledger ({outcomes})")
    console.print(
        f"records  {sums.records:,} read = {sums.written:,} written + {sums.quarantined:,} quarantined"
        f" + {sums.parked:,} parked + {sums.dropped:,} dropped"
    )
    wrong = sums.differences()
    if files_put is not None and files_put != sums.all_files:
        wrong.insert(0, f"{files_put} files were put, the ledger has {sums.all_files}")
    for difference in wrong:
        error_console.print(f"[red]does not add up:[/red] {difference}")
    if not wrong:
        console.print("[green]all sums hold[/green], counted in the ledger and again in the tables")
    return wrong


def size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
