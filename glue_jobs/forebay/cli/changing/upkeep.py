"""Commands that keep the tables in shape."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.changing.landed import landed_rows, preview_landed, show_landed
from forebay.cli.job_options import options_of
from forebay.cli.looking.history import leave_record
from forebay.cli.options import AsJson
from forebay.cli.show import columns, console, error_console, is_wide, print_json, size, styled
from forebay.counted import counted
from forebay.settings import CompactSettings, JobSettings, MaintainSettings, MergeSettings

if TYPE_CHECKING:
    from forebay.merge.job import TableMerge
    from forebay.upkeep.compaction.job import CompactionResult
    from forebay.upkeep.compaction.plan import Plan
    from forebay.upkeep.maintenance.job import MaintenanceResult
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
    from forebay.operate.lake_view import known_table
    from forebay.operate.named_lake import view_of

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
        facts = {"reason": table.reason, "detail": table.detail, "seconds": table.seconds}
        yield {"kind": "table", "table": table.table, **cared, "kept_hours": kept, **facts}
    for place, found in ran.orphans.items():
        facts = {"files": len(found), "bytes": sum(f.bytes for f in found), "such_as": found[0].name}
        yield {"kind": "orphans", "place": place, **facts, "deleted": ran.deleted}


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
