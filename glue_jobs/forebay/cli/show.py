"""How answers look on a terminal: small tables, numbers that can be read, nothing that scrolls for ever."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from forebay.operate.accounts import Accounts
from forebay.operate.lake_view import TableFacts

__all__ = ["console", "error_console", "show_accounts", "show_tables", "size"]

console = Console(highlight=False)
error_console = Console(stderr=True, highlight=False)


def show_tables(facts: Iterable[TableFacts], *, title: str | None = None) -> None:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("table")
    for name in ("rows", "files", "bytes", "version"):
        table.add_column(name, justify="right")
    table.add_column("newest event")
    for f in facts:
        newest = f.newest.strftime("%Y-%m-%d %H:%M:%S") if f.newest else "-"
        table.add_row(f.name, f"{f.rows:,}", f"{f.files:,}", size(f.bytes), str(f.version), newest)
    console.print(table)


def show_accounts(sums: Accounts, *, files_put: int | None = None) -> bool:
    """Shows the sums; says whether they add up."""
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
    return not wrong


def size(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
