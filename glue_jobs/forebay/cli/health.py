"""`forebay tables health`: how the tables are."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from forebay.cli.options import AsJson, Lake
from forebay.cli.show import console, error_console, print_json, size, styled

if TYPE_CHECKING:
    from forebay.lake.health import Health

__all__ = ["health"]


def health(
    lake: Lake,
    names: Annotated[list[str] | None, typer.Argument(metavar="[TABLE]...", help="Names; none: all tables.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show how each table is: its files, the share of small ones, objects in its log and commits since a checkpoint (cp), files
    that wait for a compaction, and when it was last compacted and vacuumed."""
    from forebay.operate.health import health_of

    found, unreadable = health_of(lake, names or [])
    if as_json:
        print_json(map(asdict, found))
    else:
        _show(found)
    for bad in unreadable:
        error_console.print(styled(f"{bad.name}: {bad.reason}", "red", f" {bad.detail}"))
    raise typer.Exit(1 if unreadable else 0)


def _show(found: list[Health]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    # On a narrow terminal a name must still be one that can be typed.
    table.add_column("table", no_wrap=True, min_width=min(40, max((len(one.table) for one in found), default=0)))
    for name in ("files", "small", "average", "bytes", "log", "since cp", "waiting"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("compacted", "vacuumed"):
        table.add_column(name, no_wrap=True)
    for one in found:
        small = f"{100 * one.small_share:.0f} %"
        log = (f"{one.log_objects:,}", f"{one.since_checkpoint:,}", f"{one.waiting:,}")
        sizes = (size(one.average_bytes), size(one.bytes))
        table.add_row(one.table, f"{one.files:,}", small, *sizes, *log, _at(one.compacted_at), _at(one.vacuumed_at))
    console.print(table)


def _at(moment: datetime | None) -> str:
    return moment.strftime("%m-%d %H:%M") if moment else "-"
