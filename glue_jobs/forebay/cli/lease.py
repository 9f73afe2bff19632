"""`forebay lease`: which job works on the lake, and what to do about one that is gone."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from forebay.cli.history import leave_record
from forebay.cli.options import AsJson, Checkpoint, Lake, Yes
from forebay.cli.show import console, print_json, printable

__all__ = ["app"]

app = typer.Typer(help="Show which job works on the lake, and take its place.", no_args_is_help=True)

Of = Annotated[str, typer.Option("--table", help="The lease of who compacts or maintains this table.")]


@app.command()
def show(lake: Lake, table: Of = "", checkpoint: Checkpoint = "", as_json: AsJson = False) -> None:
    """Show who holds the ingest job's lease, or a table's."""
    from forebay.lake.lease import holder

    folder = _folder(lake, table, checkpoint)
    found = holder(folder)
    if as_json:
        print_json([{"lease": folder, "holder": asdict(found) if found else None}])
    elif found is None:
        console.print(f"{folder}: nobody holds it")
    else:
        console.print(f"{folder}: {found.who} holds it, as number {found.epoch}")


@app.command("break")
def break_it(lake: Lake, table: Of = "", checkpoint: Checkpoint = "", yes: Yes = False) -> None:
    """End the lease of a job that is gone, so that another one need not wait.

    Shows who holds it, and asks. A job that lives after all notices before it marks its batch as done, and halts: nothing is
    lost or doubled. `forebay stop` is the kinder way. Undo: start that job again.
    """
    from forebay.lake.lease import break_lease, holder

    folder = _folder(lake, table, checkpoint)
    found = holder(folder)
    if found is None:
        console.print(f"{folder}: nobody holds it")
        return
    if not yes:
        typer.confirm(f"{printable(found.who)} holds {folder}. Is it gone, and shall its lease end?", abort=True)
    break_lease(folder, found)
    console.print(f"{folder}: the lease of {found.who} has ended; the next job may take it")
    leave_record(lake, f"lease break: ended the lease of {found.who} on {folder}", undo="start that job again")


def _folder(lake: str, table: str, checkpoint: str) -> str:
    from forebay.aws.preflight import check_lake
    from forebay.lake.layout import CHECKPOINT, lease_of

    check_lake(lake)
    lake = lake.rstrip("/")
    return lease_of(lake, table) if table else checkpoint.rstrip("/") or f"{lake}/{CHECKPOINT}"
