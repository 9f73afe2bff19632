"""`forebay pause` and `forebay resume`: the rows of a table wait, and land later."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.answer import answers, tell
from forebay.cli.looking.history import leave_record
from forebay.cli.options import DryRun, Lake, Service
from forebay.cli.show import console, error_console
from forebay.counted import agreed, counted
from forebay.errors import InvalidConfiguration

if TYPE_CHECKING:
    from forebay.operate.lake_view import LakeView

EVERY = "all"
Tables = Annotated[list[str], typer.Argument(metavar="TABLE...|all", help="Names of tables, or all.")]
Resumed = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TABLE...|all", help="Names of tables, or all. Without any, an error names the paused ones."
    ),
]


@answers
def pause(lake: Lake, tables: Tables, service: Service = "", dry_run: DryRun = False) -> None:
    """Pause tables: their rows wait, from the next batch on.

    The job still reads files, and other tables get their rows. Rows for a paused table wait in the quarantine with the reason
    paused, and the ledger counts them. A running batch is not affected. Repeating the command changes nothing. Undo:
    `forebay resume`.
    """
    from forebay.lake.paused import pause as pause_tables
    from forebay.lake.paused import paused_tables
    from forebay.operate.named_lake import begun_view

    view = begun_view(lake)
    names = _names(tables)
    _must_be_known(view, tables if tables != [EVERY] else (), service)
    new = sorted(set(names) - paused_tables(view.lake))
    tell(paused=new)
    if not dry_run:
        pause_tables(view.lake, new)
        if new:
            leave_record(lake, f"pause: {_listed(new)}", undo=f"forebay resume {' '.join(map(_typed, new))}")
    verb = "would be paused" if dry_run else "paused from the next batch on"
    console.print(f"{_listed(new)}: {verb}" if new else "paused already; nothing changed")


@answers
def resume(lake: Lake, tables: Resumed = None, service: Service = "", dry_run: DryRun = False) -> None:
    """Resume paused tables, and load the rows that waited, exactly once.

    Starts Spark for that, also while the ingest job runs. A batch that began earlier may still set rows aside: `forebay status`
    counts them. Repeat the command to load them. The next start of the job does the same, unless another table is paused.
    Undo: `forebay pause`.
    """
    from forebay.batch.reasons import PAUSED_TABLE
    from forebay.declaration.kept.in_force import service_for
    from forebay.lake.layout import writer_of
    from forebay.lake.lease import holder
    from forebay.lake.paused import ALL, paused_tables
    from forebay.lake.paused import resume as resume_tables
    from forebay.operate.looking.held import chosen_of
    from forebay.operate.named_lake import begun_view
    from forebay.privacy.known_secret import must_be_known_secret
    from forebay.upkeep.erase.keeping import must_keep_subject

    view = begun_view(lake)
    there = paused_tables(view.lake)
    if not tables:
        hint = f"paused: {_listed([ALL] if ALL in there else sorted(there))}" if there else "no table is paused"
        raise InvalidConfiguration.one("resume", "TABLE is missing", hint)
    declared = service_for(service, lake)
    must_keep_subject(lake, declared)
    _must_be_known(view, set(tables) - {EVERY} - there if ALL not in there else (), service)
    names = sorted(there) if tables == [EVERY] else _names(tables)
    if tables != [EVERY] and ALL in there:
        raise InvalidConfiguration.one(
            "tables", "all of them are paused", "run `forebay resume all`, then pause the tables that you want"
        )
    wanted = [None] if tables == [EVERY] else names
    waiting = sum(chosen_of(view, "quarantine", declared.name, table=name, reason=PAUSED_TABLE) for name in wanted)
    if waiting and not dry_run:
        must_be_known_secret(view.lake, declared)  # else the rows could not be loaded
    verb = ": would be resumed" if dry_run else ": resumed from the next batch on"
    done = sorted(set(names) & there)
    tell(resumed=done, waited=waiting, wait=waiting)
    console.print(f"{_listed(done) + verb if done else 'nothing is paused'}; {counted(waiting, 'row', 'waits')}")
    if dry_run:
        return
    resume_tables(view.lake, names)
    if done:
        leave_record(lake, f"resume: {_listed(done)}", undo=f"forebay pause {' '.join(map(_typed, done))}")
    if waiting:
        from forebay.cli.changing.held import retry_records

        for name in wanted:
            retry_records(lake, declared, "quarantine", name, PAUSED_TABLE)
    left = sum(chosen_of(view, "quarantine", declared.name, table=name, reason=PAUSED_TABLE) for name in wanted)
    tell(wait=left)
    if left:
        wait = f"{counted(left, 'row')} still {agreed(left, 'waits')}"
        error_console.print(f"{wait}: repeat the command when the running batch has ended")
        raise typer.Exit(1)
    if done and (runs := holder(writer_of(view.lake, declared.name))) is not None:
        error_console.print(
            f"{runs.who} ingests: a batch that it began before may still put rows aside. `forebay status` counts them, and "
            "this command loads them when you repeat it"
        )


def _names(tables: list[str]) -> list[str]:
    from forebay.lake.paused import ALL

    if EVERY in tables and len(tables) > 1:
        raise InvalidConfiguration.one("tables", "all means every table", "use it alone, or name the tables")
    return [ALL] if tables == [EVERY] else sorted(set(tables))


def _must_be_known(view: LakeView, names: Collection[str], service: str) -> None:
    """The tables must be in the lake, or made by a declaration: a mistyped name would pause nothing. Of the declarations in
    force only those of one table count, as a family may make any name."""
    from forebay.declaration.kept.in_force import kept_services, service_for
    from forebay.operate.lake_view import known_table

    if not names:
        return
    named = service_for(service, view.lake) if service else None
    declared = {table.name for one in kept_services(view.lake) for table in one.tables}
    for name in names:
        if name not in declared and (named is None or named.maker_of(name) is None):
            known_table(view, name)


def _typed(name: str) -> str:
    from forebay.lake.paused import ALL

    return EVERY if name == ALL else name


def _listed(names: list[str]) -> str:
    return ", ".join("all tables" if _typed(name) == EVERY else name for name in names)
