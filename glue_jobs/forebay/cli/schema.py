"""Commands about a table's columns."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from forebay.cli.kept import Service
from forebay.cli.lake import Lake
from forebay.cli.show import console
from forebay.declaration.service import declaration_of, load_service
from forebay.lake.log.definition import definition_of, history_of
from forebay.lake.objects import Objects, open_objects
from forebay.operate.columns import Difference, before_last_change, changes_of, columns_of, difference
from forebay.operate.drift import drift

__all__ = ["app"]

app = typer.Typer(
    help="A table's columns: what they are, how they came to be, and how to settle them.", no_args_is_help=True
)

Name = Annotated[str, typer.Argument(help="The table's name.")]


@app.command()
def show(lake: Lake, table: Name) -> None:
    """The columns, with the keys of the records that they are read from."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("column", "type", "keys"):
        shown.add_column(name)
    for column in columns_of(definition_of(_objects(lake, table))):
        shown.add_row(column.path, column.type, ", ".join(map(repr, column.keys)))
    console.print(shown)


@app.command()
def history(lake: Lake, table: Name) -> None:
    """What each version of the table changed about its columns and partitions, as far back as its log goes."""
    for change in changes_of(history_of(_objects(lake, table))):
        begins = "  (as far back as its log goes)" if change.oldest and change.version else ""
        console.print(f"[bold]version {change.version}[/bold]  {change.at:%Y-%m-%d %H:%M:%S}{begins}")
        _print(change.difference)


@app.command()
def diff(
    lake: Lake,
    table: Name,
    from_: Annotated[
        int | None, typer.Option("--from", min=0, help="This version; without it, what was before the last change.")
    ] = None,
    to: Annotated[int | None, typer.Option(min=0, help="And this one; without it, the newest.")] = None,
    service: Service = "",
) -> None:
    """How the table's columns and partitions differ between two of its versions, and from what is declared of it."""
    found = history_of(_objects(lake, table))
    after = found.newest if to is None else to
    before = before_last_change(found, after) if from_ is None else from_
    differs = difference(found.of(before), found.of(after))
    console.print(f"[bold]version {before} -> {after}[/bold]")
    _print(differs)
    console.print(f"[bold]version {found.newest} -> declaration[/bold]")
    drifted = list(drift(table, declaration_of(load_service(service), table), found.of(found.newest)))
    for one in drifted:
        console.print(f"  {one.problem}", markup=False, soft_wrap=True)
    if not drifted:
        console.print("  nothing differs")


@app.command()
def settle(lake: Lake, table: Name, service: Service = "") -> None:
    """Decide the columns anew by all that the table holds, move what was rescued into them, and give the table the partitions
    that are declared. Rewrites the table, in one commit."""
    _settle(lake, table, service, None)


@app.command()
def promote(
    lake: Lake,
    table: Name,
    field: Annotated[str, typer.Argument(help="The field of the records, dotted where it is nested.")],
    type_: Annotated[str, typer.Option("--type", help="The column's type from now on, such as timestamp.")],
    name: Annotated[str, typer.Option(help="The column's name; the field's last part unless said.")] = "",
    service: Service = "",
) -> None:
    """Give a field a column with a type of its own, filled for all old rows too, in one commit. Declare it as well, so that new
    records bring it: the line to add is printed."""
    column = {"name": name or field.rpartition(".")[2].replace("-", "_"), "type": type_, "path": field}
    _settle(lake, table, service, column)
    pairs = ", ".join(f'{key} = "{value}"' for key, value in column.items())
    console.print(f"declare it, for new records: columns = [..., {{ {pairs} }}]", markup=False)


def _objects(lake: str, table: str) -> Objects:
    return open_objects(f"{lake.rstrip('/')}/{table}")


def _print(found: Difference) -> None:
    for line in found.lines():
        console.print(f"  {line}", markup=False)
    if not found:
        console.print("  nothing differs")


def _settle(lake: str, table: str, place: str, column: dict[str, str] | None) -> None:
    from forebay.events import to_log
    from forebay.operate.settle import settle, with_column
    from forebay.spark.session import session
    from forebay.table.kernel import TableLogs

    service = load_service(place)
    if column is not None:
        service = with_column(service, table, column)
    spark = session("forebay-settle")
    logs = TableLogs(spark, emit=to_log())
    try:
        done = settle(spark, logs, f"{lake.rstrip('/')}/{table}", service, declaration_of(service, table))
    finally:
        logs.close()
    for change in done.changed:
        console.print(f"  {change}", markup=False)
    if done.partitions is not None:
        console.print(f"  partitions: {', '.join(done.partitions) or 'none'}", markup=False)
    if done.version is None:
        console.print(f"{table}: the columns are what the records say; {done.rows:,} rows")
    else:
        rescued = f"something is rescued of {done.rescued_after:,} rows, it was of {done.rescued_before:,}"
        console.print(f"{table}: {done.rows:,} rows rewritten as version {done.version}; {rescued}")
