"""How the rows of a table stand up to its expectations."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from forebay.cli.lake import Lake
from forebay.cli.show import console

__all__ = ["quality"]


def quality(lake: Lake, table: Annotated[str, typer.Argument(help="The table's name.")]) -> None:
    """How many rows fulfilled each expectation, in all batches, and in how many batches the table failed for it."""
    from forebay.operate.lake_view import LakeView
    from forebay.operate.quality import quality_of

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("expectation", "on violation"):
        shown.add_column(name)
    for name in ("rows", "violated", "share", "batches", "failed"):
        shown.add_column(name, justify="right")
    for q in quality_of(LakeView(lake), table):
        share = f"{100 * q.violated / q.rows:.2f} %" if q.rows else "-"
        numbers = (f"{q.rows:,}", f"{q.violated:,}", share, f"{q.batches:,}", f"{q.failed:,}")
        shown.add_row(q.expectation, q.on_violation, *numbers)
    console.print(shown)
