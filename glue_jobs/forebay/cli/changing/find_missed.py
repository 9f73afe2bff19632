"""`forebay find-missed`: files that S3 never announced."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.interrupted import left_to_do
from forebay.cli.job_options import options_of
from forebay.cli.looking.history import leave_record
from forebay.cli.options import AsJson
from forebay.cli.show import console, error_console, print_json
from forebay.counted import agreed, counted
from forebay.settings import ReconcileSettings

if TYPE_CHECKING:
    from forebay.upkeep.reconcile.job import Reconciled


@options_of(ReconcileSettings)
def find_missed(
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
    from forebay.operate.named_lake import tell_if_not_begun
    from forebay.upkeep.reconcile.job import find_missed as find
    from forebay.upkeep.reconcile.job import reconcile

    tell_if_not_begun(settings.lake, error_console.print)
    for place in settings.landing.split(","):
        check_bucket(place, what="landing")
    if dry_run:
        done = find(settings, s3=s3_client(), sqs=queue_client(settings.queue_url), now=datetime.now(UTC))
    else:
        with left_to_do("repeat the command: no file is loaded twice"), journal(settings) as emit:
            done = reconcile(settings, emit=emit)
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
    outcome = "missed, and announced now" if done.missed and not plan else "missed"
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
        console.print(f"{counted(done.looked_at, 'file')} checked: {len(done.missed) or 'none'} {outcome}")
    if done.withheld:
        outcome = "withheld by S3" if plan else "withheld by S3, and announced again"
        console.print(f"{counted(len(done.withheld), 'file', 'was')} {outcome}")
    if done.too_new:
        console.print(
            f"{counted(done.too_new, 'file')} of the newest {settings.settle_hours:g} hours {agreed(done.too_new, 'was')} "
            "left out: --settle-hours 0 includes files that may still be on their way"
        )
