"""Commands that keep the tables in shape."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.changing.landed import landed_rows, preview_landed, show_landed
from forebay.cli.interrupted import left_to_do
from forebay.cli.job_options import options_of
from forebay.cli.looking.history import leave_record
from forebay.cli.options import AsJson
from forebay.cli.show import columns, console, error_console, is_wide, print_json, size, styled
from forebay.counted import agreed, counted
from forebay.settings import CompactSettings, JobSettings, MaintainSettings, MergeSettings, ReconcileSettings

if TYPE_CHECKING:
    from forebay.merge.job import TableMerge
    from forebay.upkeep.compaction.job import CompactionResult
    from forebay.upkeep.compaction.plan import Plan
    from forebay.upkeep.maintenance.job import MaintenanceResult
    from forebay.upkeep.reconcile.job import Reconciled
    from forebay.upkeep.run import RunResult

UNDO_OF_LANDED = {
    "moved": "copy the files back to their keys; `forebay where` names their places",
    "deleted": "put the files back, or restore their old versions if the bucket has them",
}


@options_of(CompactSettings)
def compact(
    settings: CompactSettings,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, why, and at what cost.")] = False,
    as_json: AsJson = False,
) -> None:
    """Rewrite small files into large ones; no row changes.

    Streaming readers see no new data. --dry-run shows what would be done, why, and at what cost.
    """
    _must_be_there(settings, settings.table_names)
    if dry_run:
        raise typer.Exit(_plan_only(settings, as_json=as_json))
    from forebay.jobs.journal import journal
    from forebay.upkeep.compaction.job import compact as run

    with journal(settings) as emit:
        ran = run(settings, emit=emit, stop=threading.Event())
    if commits := [commit.effect for table in ran.tables for commit in table.commits]:
        removed, added = sum(one.files_removed for one in commits), sum(one.files_added for one in commits)
        what = f"compact: {counted(removed, 'file')} of {counted(len(ran.tables), 'table')} became {added:,}"
        leave_record(settings.lake, what, undo="not needed: no row changed")
    if as_json:
        print(ran.plan.as_json())
    _show_ran(ran)
    raise typer.Exit(ran.status)


@options_of(MaintainSettings)
def maintain(
    settings: MaintainSettings,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show which landed files after_load would move or delete.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Delete files that no readable version needs.

    The declared time travel decides which versions are readable. The command also shortens logs, and moves or deletes landed
    files as after_load declares. With --vacuum full, it lists files that no log names.
    """
    _must_be_there(settings, settings.table_names)
    if dry_run:
        preview_landed(settings, as_json=as_json)
        return
    from forebay.jobs.journal import journal
    from forebay.upkeep.maintenance.job import maintain as run

    with journal(settings) as emit:
        ran = run(settings, emit=emit, stop=threading.Event())
    if deleted := sum(table.cared.files_deleted for table in ran.tables if table.cared is not None):
        what = f"maintain: {counted(deleted, 'file')} that no readable version needs were deleted"
        leave_record(settings.lake, what, undo="impossible: they are deleted")
    for action, undo in UNDO_OF_LANDED.items():
        if ran.landed and (cleared := ran.landed.actions[action]):
            what = f"maintain: {counted(cleared, 'landed file')} {action}, as after_load declares"
            leave_record(settings.lake, what, undo=undo)
    if as_json:
        print_json([*_maintained_rows(ran), *landed_rows(ran.landed)])
    else:
        _show_maintained(ran)
    raise typer.Exit(ran.status)


@options_of(MergeSettings)
def merge(settings: MergeSettings, as_json: AsJson = False) -> None:
    """Update the states of merge tables, and the rollups.

    The ingest job does this beside its batches. This command does it now.
    """
    _must_be_there(settings)
    from forebay.jobs.journal import journal
    from forebay.merge.job import merge as run

    with journal(settings) as emit:
        ran = run(settings, emit=emit, stop=threading.Event())
    if changed := [table.table for table in ran.tables if table.steps]:
        what = f"merge: {', '.join(changed)} brought up to date"
        leave_record(settings.lake, what, undo="not needed: the ingest job does the same")
    if as_json:
        steps = [(table, one) for table in ran.tables for one in (table.steps or (None,))]
        print_json(
            [
                {"table": table.table, "reason": table.reason, "detail": table.detail, **(asdict(one) if one else {})}
                for table, one in steps
            ]
        )
    else:
        _show_merged(ran)
    raise typer.Exit(ran.status)


@options_of(ReconcileSettings)
def reconcile(
    settings: ReconcileSettings,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the files, and announce none.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find files that S3 never announced, and announce them.

    Leaves out files of the newest --settle-hours, because their messages may still arrive.
    """
    from forebay.aws.client import queue_client
    from forebay.aws.preflight import check_bucket
    from forebay.jobs.journal import journal
    from forebay.lake.s3_objects import s3_client
    from forebay.operate.lake_view import tell_if_not_begun
    from forebay.upkeep.reconcile.job import find_missed
    from forebay.upkeep.reconcile.job import reconcile as run

    tell_if_not_begun(settings.lake, error_console.print)
    for place in settings.landing.split(","):
        check_bucket(place, what="landing")
    if dry_run:
        done = find_missed(settings, s3=s3_client(), sqs=queue_client(settings.queue_url), now=datetime.now(UTC))
    else:
        with left_to_do("repeat the command: no file is loaded twice"), journal(settings) as emit:
            done = run(settings, emit=emit)
        if again := len(done.missed) + len(done.withheld):
            what = f"find-missed: announced {counted(again, 'file')}, {done.surely_missed:,} of them missed"
            leave_record(settings.lake, what, undo="not needed: a loaded file is not loaded again")
    if as_json:
        files = {
            name: [
                {"uri": one.uri, "version_id": one.version_id, "file_id": one.file_id} for one in getattr(done, name)
            ]
            for name in ("missed", "withheld")
        }
        counts = {
            "looked_at": done.looked_at,
            "may_wait": done.may_wait,
            "too_new": done.too_new,
            "refused": done.refused,
        }
        print_json([{**files, **counts, "announced": not dry_run}])
    else:
        _show_reconciled(done, settings, plan=dry_run)
    raise typer.Exit(1 if done.refused else 0)


def _show_reconciled(done: Reconciled, settings: ReconcileSettings, *, plan: bool) -> None:
    for file in done.missed:
        console.print(file.uri)
    for key in done.refused:
        error_console.print(f"the queue refused {key}")
    said = "missed, and announced now" if done.missed and not plan else "missed"
    if not (done.looked_at or done.too_new):
        error_console.print(f"found no file under {settings.landing}: is it spelled correctly?")
    if done.may_wait:
        surely = (
            f"at least {done.surely_missed:,} {agreed(done.surely_missed, 'was')}"
            if done.surely_missed
            else "perhaps none was"
        )
        then = "" if plan else "; all are announced again, and none is loaded twice"
        console.print(
            f"{counted(len(done.missed), 'file', 'is not', of=done.looked_at)} in the ledger. "
            f"The queue may still have messages for {done.may_wait:,} of them, so {surely} missed{then}"
        )
    else:
        console.print(f"{counted(done.looked_at, 'file')} checked: {len(done.missed) or 'none'} {said}")
    if done.withheld:
        said = "withheld by S3" if plan else "withheld by S3, and announced again"
        console.print(f"{counted(len(done.withheld), 'file', 'was')} {said}")
    if done.too_new:
        console.print(
            f"{counted(done.too_new, 'file')} of the newest {settings.settle_hours:g} hours {agreed(done.too_new, 'was')} "
            "left out: --settle-hours 0 includes files that may still be on their way"
        )


def _show_merged(ran: RunResult[TableMerge]) -> None:
    for table in ran.tables:
        for one in table.steps:
            why = f"; computed from scratch: {one.recomputed}" if one.recomputed else ""
            if table.is_rollup:
                console.print(f"{table.table}: {counted(one.keys, 'group')} computed{why}")
                continue
            console.print(
                f"{table.table}: {counted(one.inserted, 'row')} inserted, {one.updated:,} updated, {one.deleted:,} deleted, by "
                f"changes of {counted(one.keys, 'key')}{why}"
            )
        if table.reason:
            error_console.print(styled(f"{table.table}: {table.reason}", "red", f" {table.detail}"))
    if not any(table.steps or table.reason for table in ran.tables):
        error_console.print("nothing to merge: all states and rollups are up to date, or none is declared")


def _must_be_there(settings: JobSettings, tables: Iterable[str] = ()) -> None:
    """A mistyped lake or table is an error: otherwise nothing would seem to need upkeep. Names the declarations that are used,
    if the command does not."""
    from forebay.declaration.kept.in_force import service_for
    from forebay.operate.lake_view import known_table, view_of

    view = view_of(settings.lake)
    for table in tables:
        known_table(view, table, or_own=True)
    if not settings.service:
        found = service_for("", settings.lake)
        error_console.print(
            f"service {found.name}, with its declarations, version {found.version}, which are in force in the lake"
        )


def _plan_only(settings: CompactSettings, *, as_json: bool) -> int:
    from forebay.declaration.kept.in_force import service_for
    from forebay.upkeep.compaction.job import plan_lake

    planned = plan_lake(
        settings, service_for(settings.service, settings.lake, settings.deployed_service), now=datetime.now(UTC)
    )
    if as_json:
        print(planned.as_json())
    else:
        _show_plan(planned)
    return 1 if any(skip.bad for skip in planned.skipped) else 0


def _show_plan(planned: Plan) -> None:
    wide = is_wide()
    table = columns("=do", "table", "partition", "why", ">files", *((">bytes", ">DPU-s") if wide else ()))
    for row in planned.as_rows():
        skip = row["do"] == "skip"
        files = f"{row['files_before']:,}" if skip else f"{row['files_before']:,} → {row['files_after']:,}"
        why = f"{row['why']}: {row['detail']}" if row["detail"] else row["why"]
        cost = "" if skip else f"{row['dpu_s']:,.1f}"
        style = "dim" if skip else None
        more = (size(row["bytes"]), cost) if wide else ()
        table.add_row(row["do"], row["table"], row["partition"], why, files, *more, style=style)
    console.print(table)
    totals = planned.totals()
    console.print(
        f"\n{counted(totals['files_saved'], 'file')} fewer in {counted(totals['tables'], 'table')}: "
        f"{size(totals['bytes'])} to read, about {totals['dpu_s']:,.0f} DPU-seconds"
    )


def _show_ran(ran: CompactionResult) -> None:
    for table in ran.tables:
        if table.commits:
            removed, added = (
                sum(getattr(commit.effect, name) for commit in table.commits)
                for name in ("files_removed", "files_added")
            )
            error_console.print(f"{table.table}: {counted(removed, 'file')} became {added:,}; no row changed")
        if table.reason:
            error_console.print(styled(f"{table.table}: {table.reason}", "red", f" {table.detail}"))
    if not ran.tables:
        error_console.print("nothing to do; `--dry-run` says why, and `--now` ignores the thresholds")


def _maintained_rows(ran: MaintenanceResult) -> Iterator[dict[str, object]]:
    for table in ran.tables:
        cared = asdict(table.cared) if table.cared is not None else {}
        kept = table.retention.keep_hours if table.retention is not None else None
        told = {"reason": table.reason, "detail": table.detail, "seconds": table.seconds}
        yield {"kind": "table", "table": table.table, **cared, "kept_hours": kept, **told}
    for place, found in ran.orphans.items():
        told = {"files": len(found), "bytes": sum(f.bytes for f in found), "such_as": found[0].name}
        yield {"kind": "orphans", "place": place, **told, "deleted": ran.deleted}


def _show_maintained(ran: MaintenanceResult) -> None:
    if ran.landed is not None:
        show_landed(ran.landed)
    for table in ran.tables:
        if table.cared is not None and table.retention is not None:
            checkpoint = "" if table.cared.checkpoint is None else f", checkpoint of version {table.cared.checkpoint}"
            kept = table.retention.keep_hours
            console.print(
                f"{table.table}: {counted(table.cared.files_deleted, 'file')} deleted (vacuum {table.cared.vacuum}, versions "
                f"of {'its own time' if kept is None else f'{kept} h'} can be read{checkpoint})"
            )
        if table.reason:
            error_console.print(styled(f"{table.table}: {table.reason}", "red", f" {table.detail}"))
    for place, found in ran.orphans.items():
        done = "deleted" if ran.deleted else "kept; `--delete-orphans` deletes them"
        first = found[0].name
        console.print(
            f"{place}: {counted(len(found), 'file')} that no log names,  {size(sum(f.bytes for f in found))}, "
            f"such as {first}: {done}"
        )
