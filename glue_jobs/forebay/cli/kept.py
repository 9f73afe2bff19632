"""Commands about the records beside the tables: the quarantine, and those that are parked."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from forebay.cli.lake import Lake
from forebay.cli.show import console
from forebay.operate.kept import Kept, kept_records, piles, values_in
from forebay.operate.lake_view import view_of

__all__ = ["parked", "quarantine"]

quarantine = typer.Typer(help="Files and records that could not be read, or were refused.", no_args_is_help=True)
parked = typer.Typer(help="Records that no table wanted.", no_args_is_help=True)

MOST_VALUES = 50

Of = Annotated[str | None, typer.Option("--table", help="Only those that were meant for this table.")]
Why = Annotated[str | None, typer.Option("--reason", help="Only those with this reason, such as table-failed.")]
Most = Annotated[int, typer.Option("--limit", min=1, help="At most so many.")]
Service = Annotated[str, typer.Option(envvar="FOREBAY_SERVICE", help="The declarations, as they are now.")]


@quarantine.command("list")
def list_quarantine(lake: Lake) -> None:
    """How many records are in the quarantine, by table and reason."""
    _list(lake, "quarantine")


@quarantine.command("show")
def show_quarantine(lake: Lake, table: Of = None, reason: Why = None, limit: Most = 20) -> None:
    """The newest records in the quarantine, as they came."""
    _show(lake, "quarantine", table, reason, limit)


@quarantine.command("retry")
def retry(lake: Lake, service: Service = "", table: Of = None, reason: Why = None) -> None:
    """Give the records another try, with the declarations as they are now: what fits a table lands there, exactly once."""
    _try_again(lake, service, "quarantine", table, reason, give_up=False)


@quarantine.command("drop")
def drop(
    lake: Lake,
    service: Service = "",
    table: Of = None,
    reason: Why = None,
    yes: Annotated[bool, typer.Option("--yes", help="Without being asked.")] = False,
) -> None:
    """Give the records up. The ledger counts them as dropped."""
    if not yes:
        typer.confirm("These records will be in no table and in no quarantine. Go on?", abort=True)
    _try_again(lake, service, "quarantine", table, reason, give_up=True)


@parked.command("list")
def list_parked(
    lake: Lake,
    by: Annotated[str, typer.Option(help="Count them by the values of this field, such as event or player.id.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="With --by: of so many, the newest.")] = 10_000,
) -> None:
    """How many records are parked, and with --by of what kind: what a declaration would have to ask for."""
    if by:
        _list_by(lake, "parked", by, limit)
    else:
        _list(lake, "parked")


@parked.command("show")
def show_parked(lake: Lake, limit: Most = 20) -> None:
    """The newest parked records, as they came."""
    _show(lake, "parked", None, None, limit)


@parked.command("adopt")
def adopt(
    lake: Lake, table: Annotated[str, typer.Argument(help="A table that now takes them.")], service: Service = ""
) -> None:
    """Load the parked records that this table takes now, exactly once."""
    _try_again(lake, service, "parked", table, None, give_up=False)


def _list(lake: str, kept: Kept) -> None:
    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column("table")
    shown.add_column("reason")
    shown.add_column("records", justify="right")
    shown.add_column("files", justify="right")
    shown.add_column("newest")
    for pile in piles(view_of(lake), kept):
        newest = pile.newest.strftime("%Y-%m-%d %H:%M:%S")
        shown.add_row(pile.table or "-", pile.reason or "-", f"{pile.records:,}", f"{pile.files:,}", newest)
    console.print(shown)


def _list_by(lake: str, kept: Kept, field: str, limit: int) -> None:
    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column(field)
    shown.add_column("records", justify="right")
    for value, count in values_in(view_of(lake), kept, field, limit=limit).most_common(MOST_VALUES):
        shown.add_row("-" if value is None else Text(value), f"{count:,}")
    console.print(shown)


def _show(lake: str, kept: Kept, table: str | None, reason: str | None, limit: int) -> None:
    for row in kept_records(view_of(lake), kept, table=table, reason=reason, limit=limit):
        why = " · ".join(str(row[name]) for name in ("reason", "detail", "table") if row[name])
        line = "" if row["line"] is None else f":{row['line']}"
        console.print(Text(f"s3://{row['bucket']}/{row['key']}{line}  {why}", style="bold"))
        console.print(Text((row["record"] or "").rstrip()))


def _try_again(lake: str, place: str, kept: Kept, table: str | None, reason: str | None, *, give_up: bool) -> None:
    from forebay.batch.another_try import AnotherTry, Choice
    from forebay.batch.expectations import check_expressions
    from forebay.declaration.service import load_service
    from forebay.events import to_log
    from forebay.spark.session import session

    service = load_service(place)
    spark = session("forebay-another-try")
    check_expressions(spark, service)
    tries = AnotherTry(spark, service, lake=lake.rstrip("/"), emit=to_log())
    try:
        tried = tries.run(Choice(kept, table, reason, give_up))
    finally:
        tries.logs.close()
    for name, rows in sorted(tried.tables.items()):
        console.print(f"{name}: {rows:,} rows")
    left = tried.chosen - tried.moved
    console.print(
        f"{tried.chosen:,} records: {tried.moved - tried.dropped:,} written, {tried.dropped:,} dropped, {left:,} left"
    )
