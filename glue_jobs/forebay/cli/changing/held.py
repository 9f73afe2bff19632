"""Commands about the records beside the tables: the quarantine, and those that are parked."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.answer import answers, tell
from forebay.cli.confirm import confirm
from forebay.cli.looking.history import leave_record
from forebay.cli.options import AsJson, DryRun, Lake, Service, Yes
from forebay.cli.show import at, columns, console, error_console, print_json, styled
from forebay.counted import counted
from forebay.spark.signals import leaving_at_once

if TYPE_CHECKING:
    from forebay.batch.retrying.moving import Retried
    from forebay.declaration.service import Service as Declarations
    from forebay.operate.looking.held import Held

quarantine = typer.Typer(help="Look at records that were refused, and retry them.", no_args_is_help=True)
parked = typer.Typer(help="Look at records that no table accepts, and load them.", no_args_is_help=True)

MOST_VALUES = 50
PUT_AGAIN = (
    "Put a corrected file into the bucket again. After a change of declarations, `forebay replay` reads this one again. "
    "`forebay files skip --file-id ID` takes it off the list"
)
COPIES = "Copies in other files may have been left out as duplicates; `forebay replay` of such a file loads them."

Of = Annotated[str | None, typer.Option("--table", help="Only records that were meant for this table.")]
Why = Annotated[str | None, typer.Option("--reason", help="Only records with this reason, such as table-failed.")]
Most = Annotated[int, typer.Option("--limit", min=1, max=10**9, help="The largest number of records to show.")]


@quarantine.command("list")
def list_quarantine(lake: Lake, as_json: AsJson = False) -> None:
    """Count what is in the quarantine, by table and reason.

    `files` counts the files of these records, and `whole files` those that could not be read at all.
    """
    _list(lake, "quarantine", as_json)


@quarantine.command("show")
def show_quarantine(
    lake: Lake, table: Of = None, reason: Why = None, limit: Most = 20, as_json: AsJson = False
) -> None:
    """Show the newest records in the quarantine, unchanged."""
    _show(lake, "quarantine", table, reason, limit, as_json)


@quarantine.command("retry")
@answers
def retry(lake: Lake, service: Service = "", table: Of = None, reason: Why = None, dry_run: DryRun = False) -> None:
    """Retry the records with the current declarations.

    Records that fit a table are loaded into it, exactly once. The rest stays. An interrupted retry continues when you repeat
    the command.
    """
    _try_again(lake, service, "quarantine", table, reason, dry_run=dry_run)


@quarantine.command("drop")
@answers
def drop(
    lake: Lake,
    service: Service = "",
    table: Of = None,
    reason: Why = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Drop the records for good. The ledger counts them as dropped.

    Shows which records it would drop, and asks. There is no undo; the files that they came from stay in the landing bucket.
    """
    _try_again(lake, service, "quarantine", table, reason, give_up=True, dry_run=dry_run, yes=yes)


@parked.command("list")
def list_parked(
    lake: Lake,
    by: Annotated[str, typer.Option(help="Count them by the values of this field, such as event or player.id.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10**9, help="With --by: count only this many, the newest.")] = 10_000,
    service: Service = "",
    as_json: AsJson = False,
) -> None:
    """Count the parked records; with --by, for each value of a field.

    The values show what a declaration could select. @key.x and @metadata.x are fields, too.
    """
    if by:
        _list_by(lake, by, limit, service, as_json)
    else:
        _list(lake, "parked", as_json)


@parked.command("show")
def show_parked(lake: Lake, limit: Most = 20, as_json: AsJson = False) -> None:
    """Show the newest parked records, unchanged."""
    _show(lake, "parked", None, None, limit, as_json)


@parked.command("adopt")
@answers
def adopt(
    lake: Lake,
    table: Annotated[str, typer.Argument(help="A table that accepts them now.")],
    service: Service = "",
    dry_run: DryRun = False,
) -> None:
    """Load the parked records that this table accepts now, exactly once."""
    _try_again(lake, service, "parked", table, None, dry_run=dry_run)


@parked.command("drop")
@answers
def drop_parked(lake: Lake, service: Service = "", dry_run: DryRun = False, yes: Yes = False) -> None:
    """Drop the parked records of a service for good. The ledger counts them as dropped.

    Shows how many records it would drop, and asks. There is no undo; the files that they came from stay in the landing bucket.
    """
    _try_again(lake, service, "parked", None, None, give_up=True, dry_run=dry_run, yes=yes)


def _list(lake: str, held: Held, as_json: bool) -> None:
    from forebay.operate.looking.held import piles
    from forebay.operate.named_lake import view_of

    found = piles(view_of(lake), held)
    if as_json:
        print_json(map(asdict, found))
        return
    if not found:
        console.print("no records")
        return
    shown = columns("table", "reason", ">records", ">files", ">whole files", "=newest")
    for pile in found:
        numbers = (f"{pile.records:,}", f"{pile.files:,}", f"{pile.whole_files:,}")
        shown.add_row(pile.table or "-", pile.reason or "-", *numbers, at(pile.newest))
    console.print(shown)


def _list_by(lake: str, field: str, limit: int, service: str, as_json: bool) -> None:
    from forebay.declaration.kept.in_force import service_for
    from forebay.operate.looking.held import values_in
    from forebay.operate.named_lake import view_of

    counted = values_in(view_of(lake), "parked", field, limit=limit, service=service_for(service, lake))
    found = counted.most_common(MOST_VALUES)
    if as_json:
        print_json({"value": value, "records": count} for value, count in found)
        return
    shown = columns(field, ">records")
    for value, count in found:
        shown.add_row("-" if value is None else value, f"{count:,}")
    console.print(shown if found else "no records")


def _show(lake: str, held: Held, table: str | None, reason: str | None, limit: int, as_json: bool) -> None:
    from forebay.operate.lake_view import known_table
    from forebay.operate.looking.held import held_records, known_reason
    from forebay.operate.named_lake import view_of

    view = view_of(lake)
    found = held_records(view, held, table=table, reason=reason, limit=limit)
    if reason and not found:
        known_reason(view, held, reason)
    if table and not found:
        known_table(view, table)
    if as_json:
        print_json(found)
        return
    if not found:
        console.print("no records")
    for row in found:
        why = " · ".join(str(row[name]) for name in ("reason", "detail", "table") if row[name])
        line = "" if row["line"] is None else f":{row['line']}"
        console.print(f"s3://{row['bucket']}/{row['key']}{line}  {why}".rstrip(), style="bold")
        if row["record"]:  # a whole file has none
            console.print(row["record"].rstrip())


def _try_again(
    lake: str,
    place: str,
    held: Held,
    table: str | None,
    reason: str | None,
    *,
    give_up: bool = False,
    dry_run: bool = False,
    yes: bool = False,
) -> None:
    from forebay.declaration.kept.in_force import service_for
    from forebay.declaration.service import declaration_of
    from forebay.operate.changing.alone import retry_is_unfinished
    from forebay.operate.lake_view import known_table
    from forebay.operate.looking.held import chosen_of, known_reason, piles
    from forebay.operate.named_lake import view_of
    from forebay.upkeep.erase.keeping import must_keep_subject

    view, service = view_of(lake), service_for(place, lake)
    if held == "parked" and table:
        declaration_of(service, table)
    if not give_up:
        must_keep_subject(lake, service)
    count = chosen_of(view, held, service.name, table=table, reason=reason)
    if reason and not count:
        known_reason(view, held, reason)
    if table and not count and service.maker_of(table) is None:
        known_table(view, table)
    tell(service=service.name, declarations=service.version, chosen=count)
    if not count and not retry_is_unfinished(view.lake, service.name):
        tell(written=0, dropped=0, left=0)
        console.print(f"nothing to do: service {service.name} has no such records")
        if whole := sum(pile.whole_files for pile in piles(view, held) if not table and reason in (None, pile.reason)):
            console.print(f"{counted(whole, 'whole file')} could not be read. {PUT_AGAIN}")
        return
    verb = "dropped" if give_up else f"tried for table {table}" if held == "parked" else "retried"
    by = "" if give_up else f" with its declarations, version {service.version}"
    console.print(f"{counted(count, 'record')} of service {service.name} will be {verb}{by}")
    if not (place or give_up):
        console.print(
            "These are the declarations that the ingest job used last. --service names others, such as newly pushed ones"
        )
    if dry_run:
        return
    if give_up and not yes:
        copies = f" {COPIES}" if held == "quarantine" and service.drops_duplicates else ""
        confirm(f"These records will be in no table, and no copy will be kept.{copies} Continue?")
    retry_records(lake, service, held, table, reason, give_up=give_up)


def _undo(tried: Retried, there: list[str], began: datetime, *, give_up: bool) -> str:
    """A table that is new has no version before."""
    tables = [name for name in sorted(tried.tables) if name in there]
    if tables:
        return f"forebay rollback {' '.join(tables)} --to {began.isoformat(timespec='milliseconds')}"
    return "impossible: they are deleted" if give_up else "not needed: no earlier version of a table got rows"


@leaving_at_once("repeat the command to continue")
def retry_records(
    lake: str, service: Declarations, held: Held, table: str | None, reason: str | None, *, give_up: bool = False
) -> None:
    """Starts Spark, carries the choice out, and says what became of the records."""
    from forebay.batch.events import TableFailed
    from forebay.batch.retrying.plan import Choice
    from forebay.batch.retrying.retry import Retry
    from forebay.declared_sql.check import check_expressions
    from forebay.events import Event, Journal, to_log
    from forebay.lake.safety import session_for
    from forebay.operate.lake_view import LakeView
    from forebay.privacy.known_secret import must_be_known_secret

    if not give_up:
        must_be_known_secret(lake, service)
    began, there = datetime.now(UTC), LakeView(lake.rstrip("/")).tables()
    spark = session_for(lake.rstrip("/"), "forebay-retry", emit=to_log())
    check_expressions(spark, service)
    failed: list[Event] = []
    tries = Retry(spark, service, lake=lake.rstrip("/"), emit=Journal(to_log(), failed.append))
    try:
        tried = tries.run(Choice(held, table, reason, give_up))
    finally:
        tries.logs.close()
    tell(
        tables=tried.tables,
        written=tried.moved - tried.dropped,
        dropped=tried.dropped,
        left=tried.chosen - tried.moved,
        refused=dict(tried.refused),
    )
    if (earlier := tries.finished).moved:
        became = f"{earlier.moved - earlier.dropped:,} written, {earlier.dropped:,} dropped"
        console.print(f"an interrupted command was finished first: {became}")
    for name, rows in sorted(tried.tables.items()):
        console.print(f"{name}: {counted(rows, 'row')}")
    for one in failed:
        if isinstance(one, TableFailed):
            error_console.print(styled(f"{one.table}: still cannot be written:", "red", f" {one.error}"))
    if tried.waiting:
        console.print(
            f"{counted(tried.waiting, 'file', 'is')} being replaced or replayed by a batch, "
            "so its records were left. Repeat the command later"
        )
    if tried.superseded:
        console.print(
            f"{counted(tried.superseded, 'record', 'stays')}: their tables have rows of an earlier version or reading of "
            "the same files. `forebay replay` loads these files"
        )
    left = tried.chosen - tried.moved
    if tried.moved:
        became = f"{counted(tried.moved - tried.dropped, 'record')} written, {tried.dropped:,} dropped"
        verb = f"{held} drop" if give_up else "parked adopt" if held == "parked" else "quarantine retry"
        leave_record(lake, f"{verb}: {became}", undo=_undo(tried, there, began, give_up=give_up))
    sums = f"{tried.moved - tried.dropped:,} written, {tried.dropped:,} dropped, {left:,} left"
    why = ", ".join(f"{rows:,} {reason}" for reason, rows in sorted(tried.refused.items()))
    console.print(f"{counted(tried.chosen, 'record')}: {sums}{why and f': {why}'}")
