"""`forebay backfill`: loads files that were in a bucket before forebay was deployed."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.address import overlap
from forebay.cli.interrupted import left_to_do
from forebay.cli.looking.history import leave_record
from forebay.cli.options import AsJson, DryRun, Lake, Of, QueueUrl, Service, moment
from forebay.cli.progress import Progress
from forebay.cli.show import console, error_console, print_json, size
from forebay.cli.usage import must_be_given
from forebay.counted import agreed, counted
from forebay.errors import InvalidConfiguration

if TYPE_CHECKING:
    from forebay.upkeep.reconcile.backfill import Progress as Step
    from forebay.upkeep.reconcile.backfill import Waits


def backfill(
    lake: Lake,
    place: Annotated[str, typer.Argument(metavar="s3://BUCKET/PREFIX", help="Where the files are.")],
    queue_url: QueueUrl = "",
    service: Service = "",
    of: Of = "",
    since: Annotated[datetime | None, moment("Only files that landed since this time, in UTC.")] = None,
    until: Annotated[datetime | None, moment("Only files that landed before this time, in UTC.")] = None,
    inventory: Annotated[
        str,
        typer.Option(
            metavar="s3://BUCKET/.../manifest.json", help="A report of S3 Inventory, instead of listing the bucket."
        ),
    ] = "",
    rate: Annotated[float, typer.Option(min=0, help="Files per second at most; 0: no limit.")] = 0,
    most_waiting: Annotated[
        int, typer.Option(min=0, help="Wait while more messages than this are in the queue.")
    ] = 200,
    current: Annotated[
        bool, typer.Option("--current", help="Only the current version of each key, and no deleted object.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Start again from the first key.")] = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Load files that landed before forebay was deployed.

    Lists all versions of each key, or reads a report of S3 Inventory, and announces those that the ledger does not know. The
    ingest job loads them like any file, so `overwritten` and `on_delete` apply to older versions. Its option --landing-buckets
    must allow the bucket. An interrupted backfill continues when you repeat the command. There is no undo: announced files are
    loaded.
    """
    from forebay.aws.client import queue_client
    from forebay.aws.preflight import check_bucket, check_queue
    from forebay.declaration.kept.in_force import kept_service
    from forebay.declaration.loading import load_service
    from forebay.lake.s3_objects import s3_client
    from forebay.operate.named_lake import service_of_queue, tell_if_not_begun
    from forebay.upkeep.reconcile.backfill import Backfill, progress_of
    from forebay.upkeep.reconcile.backfill import backfill as run
    from forebay.upkeep.reconcile.inventory import open_inventory

    bucket, _, prefix = place.removeprefix("s3://").partition("/")
    if not place.startswith("s3://") or not bucket:
        raise InvalidConfiguration.one(place, "is not an S3 address", "write s3://bucket/prefix/")
    if overlap(place, lake):
        raise InvalidConfiguration.one(
            place, f"overlaps with the lake {lake}, whose own files would be loaded", "name a place outside of it"
        )
    if not dry_run:
        must_be_given("backfill", "--queue-url", queue_url, "FOREBAY_QUEUE_URL")
    if since is not None and until is not None and until <= since:
        raise InvalidConfiguration.one("--until", "is not after --since")
    tell_if_not_begun(lake, error_console.print)
    check_bucket(place, what="bucket of")
    if not dry_run:
        check_queue(queue_url)
    declared = load_service(service) if service else None
    if declared and of and declared.name != of:
        raise InvalidConfiguration.one(f"--of {of}", f"is not the service of {service}, which is {declared.name}")
    of = service_of_queue(lake, of or (declared.name if declared else ""))
    declared = declared or (kept_service(lake, of) if of else None)
    wanted = Backfill(
        lake=lake.rstrip("/"),
        bucket=bucket,
        prefix=prefix,
        queue_url=queue_url,
        since=since and since.replace(tzinfo=UTC),
        until=until and until.replace(tzinfo=UTC),
        rate=rate,
        most_waiting=most_waiting,
        inventory=inventory,
        services=(of, *(declared.shares_files_with if declared else ())),
        without_deleted=declared is None or declared.on_delete == "forget",
        only_current=current,
    )
    if inventory and (found := open_inventory(s3_client(), inventory)).bucket != bucket:
        raise InvalidConfiguration.one(
            inventory, f"is a report of {found.bucket}, not of {bucket}", "name the bucket of the report"
        )
    before = progress_of(wanted)
    if before.looked_at and not (again or dry_run):
        error_console.print(
            f"an earlier run got as far as {counted(before.looked_at, 'file')} at {before.at}; "
            "--again starts from the beginning"
        )
    with left_to_do("repeat the command to continue"), Progress() as shown:
        done = run(
            wanted,
            s3=s3_client(),
            sqs=queue_client(queue_url),
            tell=partial(_tell, shown),
            dry_run=dry_run,
            again=again,
        )
    if not dry_run and done != before:
        leave_record(
            lake,
            f"backfill: announced {counted(done.announced, 'file')} of {place}",
            undo="impossible: they will be loaded",
        )
    if as_json:
        print_json([{**asdict(done), "dry_run": dry_run}])
        return
    verb = "would be announced" if dry_run else f"{agreed(done.announced, 'was')} announced"
    if not done.looked_at:
        error_console.print(f"found no file under {place}: is it spelled correctly?")
    console.print(f"{counted(done.announced, 'file')}, {size(done.bytes)}, {verb}")
    if done.not_current:
        since_then = f"{done.not_current:,} of them {agreed(done.not_current, 'was')} overwritten or deleted since"
        console.print(f"{since_then}{'; --current leaves these out' if dry_run else ''}")
    if declared is None and not current:
        error_console.print(
            "deleted versions were left out: no job has used this lake yet, so on_delete is not known. "
            "To include them, name the declarations with --service"
        )
    console.print(
        f"{counted(done.looked_at, 'version', 'was')} checked, {counted(done.known, 'file', 'is')} already in the ledger"
    )


def _tell(shown: Progress, step: Step | Waits) -> None:
    from forebay.upkeep.reconcile.backfill import Waits

    if isinstance(step, Waits):
        shown.tell(f"{counted(step.messages, 'message', 'waits')} in the queue: the backfill lets them go first")
    else:
        shown.tell(f"{step.looked_at:,} looked at, {step.announced:,} announced, up to {step.marker[0]}")
