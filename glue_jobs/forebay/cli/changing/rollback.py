"""`forebay rollback`: restores tables to an earlier version, and the ledger with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.changing.landed import tell_away
from forebay.cli.changing.replay import announce_all
from forebay.cli.confirm import confirm
from forebay.cli.looking.history import leave_record
from forebay.cli.options import AsJson, Checkpoint, DryRun, Lake, QueueUrl, Yes, version_or_moment
from forebay.cli.show import columns, console, error_console, print_json, printable, styled
from forebay.cli.usage import must_be_given
from forebay.counted import agreed, counted
from forebay.errors import InvalidConfiguration
from forebay.spark.signals import interrupts_wait

if TYPE_CHECKING:
    from forebay.operate.changing.rollback_ledger import Rollback
    from forebay.operate.lake_view import LakeView
    from forebay.operate.looking.files import LedgerFile

FINISHES = "finishes the rollback, then stops. Press Ctrl-C again to stop at once; the same command finishes it later"


def rollback(
    lake: Lake,
    tables: Annotated[list[str], typer.Argument(metavar="TABLE...", help="Names of tables.")],
    to: Annotated[str, typer.Option(help="A version of the table, or a time in UTC, such as 2026-05-01T12:00.")],
    and_replay: Annotated[
        bool, typer.Option("--and-replay", help="Read again the files whose rows are removed.")
    ] = False,
    queue_url: QueueUrl = "",
    checkpoint: Checkpoint = "",
    wait_s: Annotated[float, typer.Option(min=0, help="How long to wait for a running job to end its batch.")] = 300,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Restore tables to an earlier version, and the ledger with them.

    Stops a running ingest job after its batch, shows which rows are removed and restored, and asks. No job can start in the
    meantime. In the ledger, removed rows count as dropped, with the reason rolled-back; with --and-replay, their files are
    announced again. An interrupted rollback is finished first when you repeat it. Undo: `forebay rollback` to the version that
    it names.
    """
    from forebay.aws.preflight import check_queue
    from forebay.lake.rollback_plan import rollback_plan
    from forebay.operate.changing.rollback import check_rollback, finish_earlier, plan_rollback
    from forebay.operate.named_lake import view_of

    target = _target(to, tables)
    if and_replay and not dry_run:
        must_be_given("rollback", "--queue-url", queue_url, "FOREBAY_QUEUE_URL")
    view = view_of(lake)
    if queue_url and and_replay:
        check_queue(queue_url)
    # No job is stopped for a mistyped name, or for nothing. An unfinished rollback is finished whatever has changed since.
    if not dry_run and (rollback_plan(view.lake) is not None or check_rollback(view, tables, target)):
        stop_the_job(view, tables, checkpoint, wait_s, yes=yes)
        with interrupts_wait(FINISHES):
            if (earlier := finish_earlier(view, tables, target, replay=and_replay)) is not None:
                if as_json:
                    print_json({**row, "earlier": True} for row in _rows(earlier, dry_run))
                _record(view, earlier)
                if earlier.replay and not and_replay:
                    error_console.print("`forebay replay --resume` announces the files that it marked for a replay")
    plan = plan_rollback(view, tables, target, replay=and_replay)
    if as_json:
        print_json(_rows(plan, dry_run))
        print_json({"table": name, "unchanged": True, "dry_run": dry_run} for name in _unchanged(plan, tables))
    else:
        _show(view, plan, tables)
    if and_replay:
        tell_away(view, _read_again(view, plan))
    if dry_run:
        return
    stay = bool(plan.tables) and _carried_out(view, plan, yes=yes)
    if and_replay:  # also where an earlier run had rolled them back, and announced nothing
        _announce(view, queue_url)
    raise typer.Exit(1 if stay else 0)


def _rows(plan: Rollback, dry_run: bool) -> Iterator[dict[str, object]]:
    for one in plan.tables:
        yield {**asdict(one), "leaving": one.leaving, "coming": one.coming, "dry_run": dry_run}


def _carried_out(view: LakeView, plan: Rollback, *, yes: bool) -> bool:
    """Whether a table stays unchanged."""
    from forebay.operate.changing.rollback import roll_back

    if not yes:
        confirm("Roll these tables back?", otherwise="no table was changed")
    with interrupts_wait(FINISHES):
        done = roll_back(view, plan)
        _record(view, done)
    return bool(done.stay)


def _target(to: str, tables: list[str]) -> int | datetime:
    if to.isdecimal() and len(set(tables)) > 1:
        raise InvalidConfiguration.one("--to", "is a version, and each table has its own", "name one table, or a time")
    return version_or_moment("--to", to)


def _forgotten(view: LakeView, plan: Rollback) -> int:
    """Counts the forgotten files whose rows would come back."""
    from forebay.lake.layout import LEDGER
    from forebay.ledger.entry import WANTED_AGAIN
    from forebay.operate.changing.replay import FORGOTTEN_FILES

    coming = {file for one in plan.tables for file, rows in one.changes.items() if rows > 0}
    rows = view.rows_with(LEDGER, "outcome, reason", "file_id", coming)
    return sum(row["outcome"] in FORGOTTEN_FILES and row["reason"] != WANTED_AGAIN for row in rows)


def _read_again(view: LakeView, plan: Rollback) -> list[LedgerFile]:
    from forebay.lake.layout import LEDGER
    from forebay.ledger.entry import REPLAY
    from forebay.operate.changing.rollback import entries_in
    from forebay.operate.looking.files import LedgerFile

    marked = [entry["file_id"] for entry in entries_in(view, plan) if entry["outcome"] == REPLAY]
    return [LedgerFile.of(row) for row in view.rows_with(LEDGER, "*", "file_id", marked)]


def _unchanged(plan: Rollback, tables: list[str]) -> list[str]:
    """The tables that are as in that version already."""
    return [name for name in dict.fromkeys(tables) if name not in {one.table for one in plan.tables}]


def _show(view: LakeView, plan: Rollback, tables: list[str]) -> None:
    shown = columns("table", ">version", ">to version", ">rows leave", ">rows come", ">files")
    for one in plan.tables:
        numbers = (f"{one.now}", f"{one.to}", f"{one.leaving:,}", f"{one.coming:,}", f"{len(one.files):,}")
        shown.add_row(one.table, *numbers)
    if plan.tables:
        console.print(shown)
    if files := _forgotten(view, plan):
        console.print(
            f"{counted(files, 'forgotten file', 'gets')} rows back, and {agreed(files, 'stays')} forgotten: the next start of "
            "the ingest job takes these rows out. `forebay files retry --forgotten` reads such files again"
        )
    if not plan.tables:
        console.print("nothing to do: the tables are already at that version")
        return
    for name in _unchanged(plan, tables):
        console.print(f"{name}: stays: nothing changed in it since then")


def stop_the_job(view: LakeView, tables: list[str], checkpoint: str, wait_s: float, *, yes: bool) -> None:
    """Asks first, if one runs; ends when it has ended its batch."""
    from forebay.lake.lease import holder
    from forebay.operate.changing.alone import must_be_free
    from forebay.operate.changing.stop import stop
    from forebay.operate.named_lake import checkpoint_of

    folder = checkpoint_of(view.lake, checkpoint)
    runs = holder(folder)
    if runs is None:
        return
    must_be_free(view, tables)
    if not yes:
        confirm(f"{printable(runs.who)} is ingesting. Stop it after its batch?")
    stop(folder, wait_s=wait_s)
    error_console.print(f"{runs.who} has stopped; start it again after this command")


def _record(view: LakeView, done: Rollback) -> None:
    for one in done.tables:
        console.print(
            f"{one.table}: is as in version {one.to}; {counted(one.leaving, 'row')} left, {one.coming:,} came"
        )
        leave_record(
            view.lake,
            f"rollback: {one.table} from version {one.now} to {one.to}, {counted(one.leaving, 'row')} left, "
            f"{one.coming:,} came",
            undo=f"forebay rollback {one.table} --to {one.now}",
        )
    for name, why in sorted(done.stay.items()):
        error_console.print(styled(f"{name}: stays unchanged:", "red", f" {why}"))


def _announce(view: LakeView, queue_url: str) -> None:
    from forebay.operate.changing.replay import marked

    try:
        found = marked(view)
    except InvalidConfiguration as why:
        what = f"the tables were rolled back, but no file was announced: {why}; then `forebay replay --resume` announces them"
        error_console.print(what)
        raise typer.Exit(1) from None
    if found.files:
        announce_all(found.files, queue_url)
        error_console.print("start the ingest job again: it loads these files")
