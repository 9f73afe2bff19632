"""`forebay query`: SQL over the lake."""

from __future__ import annotations

from typing import Annotated

import typer

from forebay.cli.options import AsJson, Lake
from forebay.cli.show import columns, console, error_console, print_json

__all__ = ["query"]

WIDEST = 60


def query(
    lake: Lake,
    sql: Annotated[str, typer.Argument(help="One SELECT.", metavar="SQL")],
    limit: Annotated[int, typer.Option(min=1, help="The largest number of rows to show.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Ask the lake's tables and the ledger, in SQL.

    Tables go by their names; `ledger`, `quarantine`, `parked` and `quality` are forebay's own. Read-only: what would write is
    refused.
    """
    from forebay.operate.lake_view import view_of
    from forebay.operate.sql import query as ask

    found = ask(view_of(lake), sql)
    rows = found.slice(0, limit).to_pylist()
    if as_json:
        print_json(rows)
    else:
        shown = columns(*found.column_names)
        for row in rows:
            texts = ("-" if value is None else str(value) for value in row.values())
            shown.add_row(*(text if len(text) <= WIDEST else f"{text[:WIDEST]}…" for text in texts))
        console.print(shown)
    if found.num_rows > limit:
        error_console.print(f"{limit:,} of {found.num_rows:,} rows; --limit shows more")
