"""`forebay replay`: reads files again, and replaces their earlier rows."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.changing.landed import tell_away
from forebay.cli.confirm import confirm
from forebay.cli.looking.history import leave_record
from forebay.cli.options import SUCH_A_KEY, AsJson, DryRun, Lake, Of, QueueUrl, Service, Yes, moment
from forebay.cli.progress import Progress
from forebay.cli.show import columns, console, error_console, print_json
from forebay.cli.usage import must_be_given
from forebay.counted import counted
from forebay.errors import InvalidConfiguration
from forebay.spark.signals import leaving_at_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forebay.operate.changing.replay import Replay
    from forebay.operate.looking.files import LedgerFile

__all__ = ["announce_all", "replay", "show_rows"]

MOST_WAITING = 200


def replay(
    lake: Lake,
    queue_url: QueueUrl = "",
    files: Annotated[
        list[str] | None, typer.Option("--file", help="This file, s3://bucket/key; may be repeated.")
    ] = None,
    key: Annotated[str, typer.Option(help=f"Files with {SUCH_A_KEY}")] = "",
    since: Annotated[datetime | None, moment("Loaded since this time, in UTC.")] = None,
    until: Annotated[datetime | None, moment("Loaded before this time, in UTC.")] = None,
    table: Annotated[str, typer.Option(help="Files with rows in this table.")] = "",
    batch: Annotated[int | None, typer.Option(help="Files of this batch.")] = None,
    generation: Annotated[
        str, typer.Option(help="With --batch: the stream, where several streams had such a batch.")
    ] = "",
    quarantined: Annotated[bool, typer.Option("--quarantined", help="Files with records in the quarantine.")] = False,
    of: Of = "",
    into: Annotated[
        str, typer.Option(metavar="LAKE", help="Load them into this other lake, and leave this one unchanged.")
    ] = "",
    service: Service = "",
    resume: Annotated[
        bool, typer.Option("--resume", help="Announce again what an earlier replay has not loaded yet.")
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
    each table, one commit removes their rows, and the next appends the new ones, so no row exists twice. If S3 no longer has a
    file, its rows stay, and the ledger says not-replayed. After an interruption, continue with --resume. Undo: push the
    earlier declarations, and repeat the command.

    --into loads the files into another lake instead, with the declarations of --service. This lake and its ledger stay as they
    are. The command starts Spark for that, and continues where it was when you repeat it. Undo: delete that lake.
    """
    from forebay.aws.preflight import check_queue
    from forebay.operate.changing.replay import mark, replay_of, waiting
    from forebay.operate.lake_view import known_table, view_of
    from forebay.operate.looking.files import FileChoice

    choice = FileChoice(None, None, table or None, key or None, batch, since, until, quarantined)
    chosen = choice != FileChoice() or bool(files)
    choice = replace(choice, service=of or None, generation=generation or None)
    if generation and batch is None:
        raise InvalidConfiguration.one("--generation", "needs --batch", "name the batch")
    if resume == chosen:
        raise InvalidConfiguration.one(
            "replay", "choose files, or --resume", "such as --table alpha --since 2026-05-01"
        )
    if into and resume:
        raise InvalidConfiguration.one(
            "--resume", "cannot be combined with --into", "repeat the same command to continue"
        )
    if not dry_run and not into:
        must_be_given("replay", "--queue-url", queue_url, "FOREBAY_QUEUE_URL")
    view = view_of(lake)
    if into:
        from forebay.operate.changing.aside import side_lake

        into = side_lake(view.lake, into)
    found = waiting(view, of or None) if resume else replay_of(view, choice, files or ())
    if table and not found.files:
        known_table(view, table)
    if as_json:
        told = {"files": len(found.files), "records": found.records, "rows": found.rows, **found.held}
        print_json([{**told, "left_out": found.left_out, "dry_run": dry_run, **({"into": into} if into else {})}])
    else:
        _show(found, into)
    tell_away(view, found.files)
    if not (found.files or found.left_out):
        error_console.print("no file in the ledger matches")
    if dry_run or not found.files:
        return
    if queue_url:
        check_queue(queue_url)
    if into:
        if not yes:
            confirm(f"Read them into {into}?")
        _load_aside(lake, found, service, into, queue_url, most_waiting, rate)
        return
    if not (yes or resume):
        confirm("Read them again, and replace their rows?")
    count = mark(view, found)
    if not resume:
        leave_record(
            lake,
            f"replay: {counted(count, 'file')}, {counted(found.records, 'record')} in {', '.join(found.rows) or 'no table'}",
            undo="push the earlier declarations, and replay the same files",
        )
    announce_all(found.files, queue_url, most_waiting=most_waiting, rate=rate)
    error_console.print("the ingest job replaces their rows; `forebay files list --outcome replay` shows what is left")


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
    from forebay.aws.client import client

    with Progress(len(files)) as shown:
        announced = announce_paced(
            client("sqs"),
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
def _load_aside(
    lake: str, found: Replay, place: str, into: str, queue_url: str, most_waiting: int, rate: float
) -> None:
    from forebay.aws.announce import wait_while_full
    from forebay.aws.client import client
    from forebay.aws.preflight import check_lake
    from forebay.batch.check_sql import check_expressions
    from forebay.batch.erased import without_erased
    from forebay.declaration.loading import load_service
    from forebay.events import to_log
    from forebay.lake.safety import session_for
    from forebay.operate.changing.aside import load_aside

    check_lake(into)
    declared = without_erased(load_service(place), lake)
    spark = session_for(into, "forebay-replay", emit=to_log())
    check_expressions(spark, declared)

    def let_others_pass(files: int) -> None:
        if queue_url:
            wait_while_full(client("sqs"), queue_url, most_waiting, tell=partial(_tell_wait, shown, most_waiting))
        if rate:
            time.sleep(files / rate)

    files = [file.landed for file in found.files]
    with Progress(len(files)) as shown:
        for so_far in load_aside(spark, files, declared, into, emit=to_log(), before_each=let_others_pass):
            shown.tell(f"read: {so_far:,} of {counted(len(files), 'file')}", so_far)
    what = f"replay: {counted(len(files), 'file')} into {into}; this lake is unchanged"
    leave_record(lake, what, undo=f"delete {into}")
    console.print(f"{into} has them: `forebay tables --lake {into}`, and `forebay audit --lake {into}`")


def _show(found: Replay, into: str) -> None:
    what = "for that lake. They have these rows here:" if into else "to read again. Their rows will be replaced:"
    console.print(f"{counted(len(found.files), 'file')} of {counted(found.records, 'record')} {what}")
    show_rows(found)


def show_rows(found: Replay) -> None:
    """Shows the rows that leave, by table, and the files that the replay leaves out."""
    shown = columns("table", ">rows")
    for table, rows in found.rows.items():
        shown.add_row(table, f"{rows:,}")
    for name, rows in found.held.items():
        if rows:
            shown.add_row(f"({name})", f"{rows:,}")
    console.print(shown)
    if found.left_out:
        said = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(found.left_out.items()))
        console.print(f"left out, because none of their rows are in the lake: {said}")
