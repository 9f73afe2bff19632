"""Commands about a table's columns."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.answer import answers, tell
from forebay.cli.looking.history import leave_record
from forebay.cli.options import AsJson, Lake, Service
from forebay.cli.show import columns, console, print_json, styled
from forebay.counted import counted
from forebay.spark.signals import leaving_at_once

if TYPE_CHECKING:
    from forebay.lake.objects import Objects
    from forebay.operate.declaring.columns import Difference

app = typer.Typer(help="Show and change a table's columns.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The table's name.")]


@app.command()
def show(lake: Lake, table: Name, as_json: AsJson = False) -> None:
    """Show the columns, with the keys of the records from which they are read."""
    from forebay.lake.log.definition import definition_of
    from forebay.operate.declaring.columns import columns_of

    found = columns_of(definition_of(_objects(lake, table)))
    if as_json:
        print_json(map(asdict, found))
        return
    with_keys = any(column.keys for column in found)
    shown = columns("column", "type", *(["keys"] if with_keys else []))
    for column in found:
        shown.add_row(column.path, column.type, *([", ".join(map(repr, column.keys))] if with_keys else []))
    console.print(shown)


@app.command()
def history(lake: Lake, table: Name, as_json: AsJson = False) -> None:
    """Show what each version changed about columns and partitions, as far back as the table's log goes."""
    from forebay.lake.log.definition import history_of
    from forebay.operate.declaring.columns import changes_of

    found = changes_of(history_of(_objects(lake, table)))
    if as_json:
        print_json(map(asdict, found))
        return
    for change in found:
        begins = "  (as far back as its log goes)" if change.oldest and change.version else ""
        console.print(styled(f"version {change.version}", "bold", f"  {change.at:%Y-%m-%d %H:%M:%S}{begins}"))
        _print(change.difference)


@app.command()
def diff(
    lake: Lake,
    table: Name,
    from_: Annotated[
        int | None, typer.Option("--from", min=0, help="This version; without it, the version before the last change.")
    ] = None,
    to: Annotated[int | None, typer.Option(min=0, help="And this version; without it, the newest.")] = None,
    service: Service = "",
    as_json: AsJson = False,
) -> None:
    """Show how the table differs between two versions, and from its declaration."""
    from forebay.declaration.kept.in_force import service_for
    from forebay.declaration.service import declaration_of
    from forebay.lake.log.definition import history_of
    from forebay.operate.declaring.columns import before_last_change, difference
    from forebay.operate.declaring.drift import drift

    found = history_of(_objects(lake, table))
    after = found.newest if to is None else to
    before = before_last_change(found, after) if from_ is None else from_
    differs = difference(found.of(before), found.of(after))
    drifted = list(drift(table, declaration_of(service_for(service, lake), table), found.of(found.newest)))
    if as_json:
        facts = {"from": before, "to": after, "difference": asdict(differs)}
        print_json([{**facts, "declaration": [str(one.problem) for one in drifted]}])
        return
    if from_ is None and not differs:
        console.print(f"version {after}: the columns have not changed since version {found.oldest}")
    else:
        console.print(f"version {before} -> {after}", style="bold")
        _print(differs)
    console.print(f"version {found.newest} -> declaration", style="bold")
    for one in drifted:
        console.print(f"  {one.problem}")
    if not drifted:
        console.print("  nothing differs")


@app.command()
@answers
def settle(lake: Lake, table: Name, service: Service = "") -> None:
    """Rewrite the table with the columns and types that fit all its rows.

    Rescued values move into columns, and the table gets the declared partitions. It is one commit. Undo: `forebay rollback` to
    the version before it, which `forebay history` names.
    """
    _settle(lake, table, service, None)


@app.command()
@answers
def promote(
    lake: Lake,
    table: Name,
    field: Annotated[str, typer.Argument(help="The field of the records, with dots if it is nested.")],
    type_: Annotated[str, typer.Option("--type", help="The column's new type, such as timestamp.")],
    name: Annotated[str, typer.Option(help="The column's name; by default the last part of the field's path.")] = "",
    unit: Annotated[str, typer.Option(help="For times that are numbers: s, ms, us or ns since 1970.")] = "",
    service: Service = "",
) -> None:
    """Give a field its own column and type, also in existing rows.

    It is one commit. Declare the column as well, so that new records fill it. The command prints the line to add.
    """
    column = {"name": name or field.rpartition(".")[2].replace("-", "_"), "type": type_, "path": field}
    column |= {"unit": unit} if unit else {}
    _settle(lake, table, service, column)
    tell(declare=column)
    pairs = ", ".join(f'{key} = "{value}"' for key, value in column.items())
    console.print(f"declare it, for new records: columns = [..., {{ {pairs} }}]")


def _objects(lake: str, table: str) -> Objects:
    from forebay.aws.preflight import check_lake
    from forebay.lake.log.listing import has_log
    from forebay.lake.objects import open_objects
    from forebay.operate.lake_view import LakeView, known_table

    check_lake(lake)
    objects = open_objects(f"{lake.rstrip('/')}/{table}")
    if not has_log(objects):
        known_table(LakeView(lake.rstrip("/")), table)
    return objects


def _print(found: Difference) -> None:
    for line in found.lines():
        console.print(f"  {line}")
    if not found:
        console.print("  nothing differs")


@leaving_at_once("`forebay schema history` says whether the commit was made")
def _settle(lake: str, table: str, place: str, column: dict[str, str] | None) -> None:
    from forebay.declaration.kept.in_force import service_for
    from forebay.declaration.service import declaration_of
    from forebay.events import to_log
    from forebay.lake.health import HealthRecords
    from forebay.lake.safety import session_for
    from forebay.operate.declaring.settle import settle, with_column
    from forebay.table.kernel import TableLogs
    from forebay.upkeep.erase.keeping import must_keep_subject

    _objects(lake, table)  # before Spark starts
    service = service_for(place, lake)
    must_keep_subject(lake, service)
    if column is not None:
        service = with_column(service, table, column)
    spark = session_for(lake.rstrip("/"), "forebay-settle", emit=to_log())
    logs = TableLogs(spark, emit=to_log())
    try:
        done = settle(spark, logs, f"{lake.rstrip('/')}/{table}", service, declaration_of(service, table))
    finally:
        logs.close()
    records = HealthRecords(lake)
    if records.of(table).left_out:
        records.update(table, lambda health: replace(health, left_out=0, left_out_such_as=""))
    tell(
        table=table,
        version=done.version,
        rows=done.rows,
        changed=list(map(str, done.changed)),
        partitions=done.partitions,
    )
    for change in done.changed:
        console.print(f"  {change}")
    if done.partitions is not None:
        console.print(f"  partitions: {', '.join(done.partitions) or 'none'}")
    if done.version is not None:
        what = "settle:" if column is None else f"promote: {column['path']} to {column['name']} {column['type']},"
        undo = f"forebay rollback {table} --to {done.version - 1}"
        leave_record(lake, f"schema {what} {table}, {counted(done.rows, 'row')}, version {done.version}", undo=undo)
    if done.version is None:
        console.print(f"{table}: the columns already fit the records; {counted(done.rows, 'row')}")
    else:
        rescued = f"rows with rescued values: {done.rescued_after:,}, before: {done.rescued_before:,}"
        console.print(f"{table}: {counted(done.rows, 'row')} rewritten as version {done.version}; {rescued}")
