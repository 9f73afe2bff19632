"""`forebay replay` reads files again, and replaces their earlier rows. `forebay replay-into` loads them into another lake."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.changing.chosen_files import ChosenFiles, choosing_files
from forebay.cli.changing.landed import tell_away
from forebay.cli.confirm import confirm
from forebay.cli.looking.history import leave_record
from forebay.cli.options import AsJson, DryRun, Lake, QueueUrl, Service, Yes, as_lake
from forebay.cli.progress import Progress
from forebay.cli.show import columns, console, error_console, print_json
from forebay.cli.usage import must_be_given
from forebay.counted import counted
from forebay.errors import InvalidConfiguration
from forebay.spark.signals import leaving_at_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forebay.declaration.service import Service as Declarations
    from forebay.operate.changing.replay import Replay
    from forebay.operate.lake_view import LakeView
    from forebay.operate.looking.files import LedgerFile

MOST_WAITING = 200
MOST_NAMED = 5
"""Batches that the record of a replay names."""


@choosing_files
def replay(
    files: ChosenFiles,
    lake: Lake,
    queue_url: QueueUrl = "",
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Announce again the files that an earlier replay has not loaded yet, or not into every table.",
        ),
    ] = False,
    most_waiting: Annotated[
        int, typer.Option(min=0, help="Wait while more messages than this are in the queue.")
    ] = MOST_WAITING,
    rate: Annotated[float, typer.Option(min=0, help="Files per second at most; 0: no limit.")] = 0,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Read files again, and replace their rows.

    Shows which rows would leave the tables, and asks. The ingest job then reads the files with the declarations in force. In
    each table, one commit removes their rows, and the next appends the new ones, so no row exists twice. Files that could not
    be read are read again, too. If S3 no longer has a file, its rows stay, and the ledger says not-replayed. After an
    interruption, continue with --resume. Undo: push the earlier declarations, and repeat the command.
    """
    from forebay.aws.preflight import check_queue
    from forebay.ledger.entry import REPLAY
    from forebay.operate.changing.replay import mark, waiting
    from forebay.operate.named_lake import view_of

    if resume == bool(files):
        raise InvalidConfiguration.one(
            "replay", "choose files, or --resume", "such as --table alpha --since 2026-05-01"
        )
    if not dry_run:
        must_be_given("replay", "--queue-url", queue_url, "FOREBAY_QUEUE_URL")
    view = view_of(lake)
    found = waiting(view, files.of or None) if resume else files.found(view)
    has_rows = bool(found.rows or any(found.held.values()))
    what = "to read again. Their rows will be replaced:" if has_rows else "to read again: none has rows"
    _show(view, found, what, {"dry_run": dry_run}, as_json=as_json)
    if dry_run or not found.files:
        return
    check_queue(queue_url)
    if not (yes or resume):
        confirm("Read them again, and replace their rows?")
    count, is_new = mark(view, found), any(file.outcome != REPLAY for file in found.files)
    if is_new:
        leave_record(
            lake,
            f"replay: {counted(count, 'file')} of {_batches_of(found.files)}, {counted(found.records, 'record')} in "
            f"{', '.join(found.rows) or 'no table'}",
            undo="push the earlier declarations, and replay the same files",
        )
    announce_all(found.files, queue_url, most_waiting=most_waiting, rate=rate)
    error_console.print("the ingest job replaces their rows; `forebay files list --outcome replay` shows what is left")


def _batches_of(files: Sequence[LedgerFile]) -> str:
    """The batches that counted the files so far, of one service."""
    batches = sorted({(file.batch or 0, f"{file.generation}") for file in files})
    if len(batches) > MOST_NAMED:
        return counted(len(batches), "batch")
    return f"{'batch' if len(batches) == 1 else 'batches'} {', '.join(str(number) for number, _ in batches)}"


@choosing_files
def replay_into(
    files: ChosenFiles,
    other_lake: Annotated[
        str, typer.Argument(callback=as_lake, help="The other lake: s3://bucket/prefix, or a folder.")
    ],
    lake: Lake,
    service: Service = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Load files into another lake, with other declarations.

    Shows which rows the files have in this lake, and asks. This lake and its ledger do not change. The command runs Spark on
    this machine. Repeat it to continue an interrupted run. Then compare the two lakes. Undo: delete the other lake.
    """
    from forebay.declaration.kept.in_force import service_for
    from forebay.operate.changing.aside import side_lake
    from forebay.operate.named_lake import view_of
    from forebay.upkeep.erase.keeping import must_leave_out_erased

    view = view_of(lake)
    into, declared = side_lake(view.lake, other_lake), service_for(service, view.lake)
    found = files.found(view)
    for file in found.files[:1]:  # all are of one service
        must_leave_out_erased(view.lake, declared, file.service or declared.name)
    what = f"for {into}. They have these rows here:"
    _show(view, found, what, {"dry_run": dry_run, "into": into}, as_json=as_json)
    if dry_run or not found.files:
        return
    if not yes:
        confirm(f"Read them into {into}?")
    _load_aside(lake, found, declared, into)


def announce_all(
    files: Sequence[LedgerFile],
    queue_url: str,
    *,
    most_waiting: int = MOST_WAITING,
    rate: float = 0,
    again: str = "`forebay replay --resume` announces the rest",
) -> None:
    """Files that are marked in the ledger. Says how many are announced, and what it waits for."""
    from forebay.aws.announce import announce_paced
    from forebay.aws.client import queue_client

    with Progress(len(files)) as shown:
        announced = announce_paced(
            queue_client(queue_url),
            queue_url,
            (file.landed for file in files),
            most_waiting=most_waiting,
            rate=rate,
            tell=partial(_tell_wait, shown, most_waiting),
            repeat=again,
        )
        try:
            for so_far in announced:
                shown.tell(f"announced: {so_far:,} of {counted(len(files), 'file')}", so_far)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(again) from None


def _tell_wait(shown: Progress, most: int, waiting: int) -> None:
    shown.tell(
        f"waits for the ingest job: {counted(waiting, 'message', 'is')} in the queue, and it continues at {most:,}"
    )


@leaving_at_once("repeat the command to continue")
def _load_aside(lake: str, found: Replay, service: Declarations, into: str) -> None:
    from forebay.aws.preflight import check_lake
    from forebay.declared_sql.check import check_expressions
    from forebay.events import to_log
    from forebay.lake.safety import session_for
    from forebay.operate.changing.aside import load_aside
    from forebay.privacy.erased import without_erased
    from forebay.privacy.known_secret import keep_secret

    check_lake(into)
    keep_secret(into, service)
    declared = without_erased(service, lake)
    spark = session_for(into, "forebay-replay", emit=to_log())
    check_expressions(spark, declared)
    files = [file.landed for file in found.files]
    with Progress(len(files)) as shown:
        for so_far in load_aside(spark, files, declared, into, emit=to_log()):
            shown.tell(f"read: {so_far:,} of {counted(len(files), 'file')}", so_far)
    what = f"replay-into: {counted(len(files), 'file')} into {into}; this lake is unchanged"
    leave_record(lake, what, undo=f"delete {into}")
    console.print(f"{into} has them: `forebay tables --lake {into}`, and `forebay audit --lake {into}`")


def _show(view: LakeView, found: Replay, what: str, asked: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        facts = {"files": len(found.files), "records": found.records, "rows": found.rows, **found.held}
        print_json([{**facts, "left_out": found.left_out, **asked}])
    else:
        console.print(f"{counted(len(found.files), 'file')} of {counted(found.records, 'record')} {what}")
        show_rows(found)
    tell_earlier(found)
    tell_away(view, found.files)
    if not (found.files or found.left_out):
        error_console.print("no file in the ledger matches")


def tell_earlier(found: Replay) -> None:
    """Says how to choose versions that were refused or forgotten, and that a later version took the place of."""
    if found.earlier:
        are_left = f"{counted(len(found.earlier), 'earlier version', 'is')} left out, because a later one was loaded"
        error_console.print(f"{are_left}. To read such a version, too, add --file-id {found.earlier[0].file_id}")


def show_rows(found: Replay) -> None:
    """Shows the rows that leave, by table, and the files that the replay leaves out."""
    shown = columns("table", ">rows")
    for table, rows in found.rows.items():
        shown.add_row(table, f"{rows:,}")
    for name, rows in found.held.items():
        if rows:
            shown.add_row(f"({name})", f"{rows:,}")
    if shown.row_count:
        console.print(shown)
    if found.left_out:
        outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(found.left_out.items()))
        console.print(f"left out, because none of their rows are in the lake: {outcomes}")
