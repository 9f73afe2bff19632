"""`forebay quality`: the rows of tables against their expectations."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from forebay.cli.options import AsJson, Lake
from forebay.cli.show import columns, console, is_wide, print_json


def quality(
    lake: Lake,
    table: Annotated[str, typer.Argument(help="The table's name; without it, all tables.")] = "",
    days: Annotated[int, typer.Option(min=0, max=100_000, help="Only batches of this many days; 0: all.")] = 0,
    limit: Annotated[int, typer.Option(min=1, help="The largest number of lines, the most violated first.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Count the rows that violate expectations.

    Shows how many rows met each expectation, and in how many batches a table failed because of it.
    """
    from forebay.operate.lake_view import known_table
    from forebay.operate.looking.quality import quality_of
    from forebay.operate.named_lake import view_of

    since = datetime.now(UTC).date() - timedelta(days=days) if days else None
    view = view_of(lake)
    found = quality_of(view, table or None, since=since)[:limit]
    if table and not found:
        known_table(view, table)
    if as_json:
        print_json(map(asdict, found))
        return
    wide = is_wide()
    more = (">share", ">batches", ">failed") if wide else (">failed",)
    shown = columns("table", "expectation", "=on violation", ">rows", ">violated", *more)
    for q in found:
        share = f"{100 * q.violated / q.rows:.2f} %" if q.rows else "-"
        numbers = (f"{q.rows:,}", f"{q.violated:,}", *((share, f"{q.batches:,}") if wide else ()), f"{q.failed:,}")
        shown.add_row(q.table, q.expectation, q.on_violation, *numbers)
    console.print(shown if found else "no expectations were judged")
