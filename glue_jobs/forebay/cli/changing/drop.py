"""`forebay tables drop`: removes tables for good."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.address import is_s3
from forebay.cli.answer import answers, tell
from forebay.cli.changing.rollback import stop_the_job
from forebay.cli.confirm import confirm
from forebay.cli.looking.history import leave_record
from forebay.cli.options import Checkpoint, DryRun, Lake, Yes
from forebay.cli.show import columns, console, error_console, size
from forebay.counted import agreed, counted
from forebay.spark.signals import interrupts_wait

if TYPE_CHECKING:
    from forebay.operate.changing.drop import Drop, Dropped, TableGone
    from forebay.operate.lake_view import LakeView

FINISHES = "finishes the drop, then stops. Press Ctrl-C again to stop at once; the same command finishes it later"


@answers
def drop(
    lake: Lake,
    tables: Annotated[list[str], typer.Argument(metavar="TABLE...", help="Names of tables.")],
    catalog: Annotated[
        str, typer.Option(help="The Glue database in which the tables are registered, such as forebay_prod.")
    ] = "",
    checkpoint: Checkpoint = "",
    wait_s: Annotated[float, typer.Option(min=0, help="How long to wait for a running job to end its batch.")] = 300,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Remove tables for good: their rows, their folders, and with --catalog their entries in the Glue Data Catalog.

    Refuses while a declaration in force names the table, or while another table is computed from it. Otherwise shows what goes,
    asks, and stops a running ingest job after its batch. In the ledger, the rows count as dropped, with the reason
    table-dropped. Landed files, archives, the vault, the quarantine and the parked records stay. An interrupted drop is
    finished when you repeat it. Undo: declare the table again, then `forebay replay --table TABLE`, while S3 has the files.
    """
    from forebay.lake.rollback_plan import rollback_plan
    from forebay.operate.changing.drop import Dropped, finish_earlier, plan_drop, with_tombstones
    from forebay.operate.changing.drop import drop as drop_tables
    from forebay.operate.named_lake import view_of

    view, earlier, done = view_of(lake), Dropped(), Dropped()
    if not dry_run and rollback_plan(view.lake) is not None:
        with interrupts_wait(FINISHES):
            earlier = finish_earlier(view)
            _record(view, earlier)
        tables = [name for name in tables if name not in earlier.names]
    tell(tables=[], dropped=earlier.names)
    if tables:
        plan = plan_drop(view, tables)
        _show(plan)
        if dry_run:
            return
        if not yes:
            confirm(f"Drop {', '.join(plan.names)} for good?")
        stop_the_job(view, with_tombstones(plan.names), checkpoint, wait_s, yes=yes)
        with interrupts_wait(FINISHES):
            done = drop_tables(view, plan, catalog)
            _record(view, done)
    tell(dropped=[*earlier.names, *done.names])
    raise typer.Exit(1 if earlier.stay or done.stay else 0)


def _show(plan: Drop) -> None:
    tell(tables=[asdict(one) for one in plan.tables])
    shown = columns("table", ">rows", ">files", ">objects", ">bytes")
    for one in plan.tables:
        shown.add_row(one.table, f"{one.rows:,}", f"{one.files:,}", f"{one.objects:,}", size(one.bytes))
    console.print(shown)
    for one in plan.tables:
        for line in _stays(one):
            console.print(line)


def _stays(one: TableGone) -> list[str]:
    found = [
        f"{counted(rows, 'record')} for {one.table} {agreed(rows, 'stays')} in the quarantine "
        f"(`forebay quarantine drop --table {one.table} --reason {reason}`)"
        for reason, rows in one.waiting.items()
    ]
    if one.made_by:
        found.append(
            f"a new record makes {one.table} again, counted from its start: the declarations of {', '.join(one.made_by)} fit it"
        )
    return found


def _record(view: LakeView, done: Dropped) -> None:
    names = ", ".join(done.names)
    again = "; ".join(f"forebay replay --table {name}" for name in done.names)
    leave_record(view.lake, f"tables drop: {names}", undo=f"declare the table again, then {again}")
    console.print(f"dropped: {names}. Landed files, archives, the vault and held records stay")
    if is_s3(view.lake):
        console.print(
            f"objects of {names} stay where the bucket keeps deleted ones, until its lifecycle rule deletes them"
        )
    if not done.catalog and is_s3(view.lake):
        console.print(
            "entries in the Glue Data Catalog stay: aws glue delete-table --database-name DATABASE --name TABLE"
        )
    for name in done.absent:
        console.print(f"the Glue database {done.catalog} has no entry {name}: is its name spelled correctly?")
    for name, why in done.stay.items():
        error_console.print(f"the entry {name} of the Glue database {done.catalog} stays: {why}")
