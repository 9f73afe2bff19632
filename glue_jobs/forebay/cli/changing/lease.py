"""`forebay lease`: which job works on the lake, and how to end the lease of a lost one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.answer import answers, tell
from forebay.cli.confirm import confirm
from forebay.cli.looking.history import leave_record
from forebay.cli.options import AsJson, Checkpoint, Lake, Of, Yes
from forebay.cli.show import console, error_console, print_json, printable
from forebay.errors import InvalidConfiguration, Problem

if TYPE_CHECKING:
    from forebay.lake.lease_holder import Holder

app = typer.Typer(help="Show which job works on the lake, and end its lease.", no_args_is_help=True)

OfTable = Annotated[str, typer.Option("--table", help="The lease for compacting or maintaining this table.")]


@app.command()
def show(
    lake: Lake,
    table: OfTable = "",
    of: Of = "",
    checkpoint: Checkpoint = "",
    as_json: AsJson = False,
) -> None:
    """Show who holds the leases of ingest jobs, or one lease.

    An ingest job holds two: one for its checkpoint, and one for its service in this lake.
    """
    for folder, found in _held(lake, table, of, checkpoint):
        if as_json:
            print_json([{"lease": folder, "holder": asdict(found) if found else None}])
        elif found is None:
            console.print(f"{folder}: no job holds its lease")
        else:
            console.print(f"{folder}: {printable(found.who)} holds its lease, number {found.epoch}")


@app.command("break")
@answers
def break_it(lake: Lake, table: OfTable = "", of: Of = "", checkpoint: Checkpoint = "", yes: Yes = False) -> None:
    """End the leases of a dead job, so that another job can start at once.

    Shows their holder, warns if that job is alive, and asks. If the job still runs, it notices before it marks its batch as
    done, and halts: no row is lost or duplicated. Prefer `forebay stop` for a running job. Undo: start that job again.
    """
    from forebay.lake.lease import break_lease, renewed_lately

    held = {folder: found for folder, found in _held(lake, table, of, checkpoint) if found is not None}
    tell(held={folder: found.who for folder, found in held.items()})
    if not held:
        console.print("no job holds a lease")
        return
    _must_be_of_one_job({folder: found.who for folder, found in held.items()})
    for folder, found in held.items():
        if (seconds := renewed_lately(folder)) is not None:
            error_console.print(
                f"{found.who} renewed its lease {seconds:,.0f} s ago, so it runs or has just ended. To end a running job, use "
                "`forebay stop`"
            )
        if not yes:
            confirm(f"{printable(found.who)} holds {folder}. Has that job died, and should its lease end?")
        break_lease(folder, found)
        console.print(f"{folder}: the lease of {printable(found.who)} has ended; the next job may take it")
        leave_record(lake, f"lease break: ended the lease of {found.who} on {folder}", undo="start that job again")


def _held(lake: str, table: str, service: str, checkpoint: str) -> list[tuple[str, Holder | None]]:
    """The leases that are meant, and who holds each of them."""
    from forebay.lake.layout import lease_of, writer_of, writers_of
    from forebay.lake.lease import holder
    from forebay.lake.objects import open_objects
    from forebay.operate.lake_view import LakeView, known_table
    from forebay.operate.named_lake import begun_lake, checkpoint_of

    lake = begun_lake(lake)
    services = open_objects(writers_of(lake)).folders()
    if service and service not in services:
        known = ", ".join(sorted(services)) or "none"
        raise InvalidConfiguration.one(f"--of {service}", "never loaded files here", f"known services: {known}")
    places = [lease_of(lake, table)] if table else []
    if table and next(iter(open_objects(places[0]).found()), None) is None:  # nobody ever held it
        known_table(LakeView(lake), table, or_own=True)
    places += [writer_of(lake, service)] if service else []
    places += [checkpoint_of(lake, checkpoint)] if checkpoint else []
    if not places:
        places = [checkpoint_of(lake, ""), *(writer_of(lake, name) for name in services)]
    return [(place, holder(place)) for place in places]


def _must_be_of_one_job(holders: Mapping[str, str]) -> None:
    """A job that lives must not lose its lease because another one is gone."""
    if len({*holders.values()}) > 1:
        raise InvalidConfiguration(
            [
                Problem(folder, f"is held by {who}", "name one with --of, --checkpoint or --table")
                for folder, who in holders.items()
            ]
        )
