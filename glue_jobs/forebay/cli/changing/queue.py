"""`forebay queue`: waiting messages, dead letters, and sending them back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forebay.cli.answer import answers, tell
from forebay.cli.confirm import confirm
from forebay.cli.interrupted import left_to_do
from forebay.cli.looking.history import leave_record
from forebay.cli.options import SUCH_A_KEY, AsJson, Checkpoint, DryRun, Lake, Of, QueueUrl, Yes, lake_option
from forebay.cli.show import at, console, error_console, print_json
from forebay.counted import counted
from forebay.errors import InvalidConfiguration
from forebay.landed_file import is_meant

if TYPE_CHECKING:
    from forebay.operate.looking.queue import Letter

app = typer.Typer(help="Look at the queue and its dead letters, and send dead letters back.", no_args_is_help=True)

Most = Annotated[int, typer.Option("--limit", min=1, help="The largest number of messages.")]
InLake = Annotated[str, lake_option("Also look up the files in this lake's ledger.")]
SHOWN_FILES = 3


@app.command("peek")
def peek_at(queue_url: QueueUrl, limit: Most = 10, as_json: AsJson = False) -> None:
    """Show messages that wait, and the files that they announce.

    Each use counts as a receive, and a message that reaches the limit of the queue's redrive policy moves to the dead-letter
    queue. So use this command rarely.
    """
    from forebay.operate.looking.queue import give_back, peek

    sqs = _sqs(queue_url)
    found = peek(queue_url, sqs=sqs, limit=limit)
    give_back(queue_url, found, sqs=sqs)
    _show(found, as_json, waiting=True)


@app.command()
def dlq(
    queue_url: QueueUrl,
    lake: InLake = "",
    of: Of = "",
    limit: Most = 100,
    drop: Annotated[bool, typer.Option("--drop", help="Delete those that announce no file and no deletion.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Show what is in the dead-letter queue, and why.

    With --lake, the ledger shows which of the files were loaded anyway. Each use counts as a receive of the letters. --drop
    shows the text of those that it would delete, and asks: there is no undo. Exit status 1 if there are dead letters.
    """
    from forebay.operate.looking.queue import delete, give_back

    sqs = _sqs(queue_url)
    dead, found = _dead_letters(queue_url, lake, of, limit, sqs)
    _show(found, as_json)
    useless, left = [one for one in found if drop and one.is_useless], found
    try:
        if useless:
            _show_bodies(useless)
            if not yes:
                confirm(f"Delete {counted(len(useless), 'letter')}?", otherwise="no letter was deleted")
            gone = delete(dead, useless, sqs=sqs)
            left = [one for one in found if one not in gone]
    finally:
        give_back(dead, left, sqs=sqs)
    if useless:
        error_console.print(f"deleted: {len(gone):,} of {counted(len(found), 'dead letter')}")
        if lake and gone:
            what = f"queue dlq: deleted {counted(len(gone), 'dead letter')} that announced nothing"
            leave_record(lake, what, undo="impossible: they are deleted")
    raise typer.Exit(1 if left else 0)


@app.command()
@answers
def redrive(
    queue_url: QueueUrl,
    lake: InLake = "",
    of: Of = "",
    every: Annotated[bool, typer.Option("--all", help="All dead letters.")] = False,
    key: Annotated[str, typer.Option(help=f"Dead letters that announce a file with {SUCH_A_KEY}")] = "",
    message: Annotated[
        list[str] | None, typer.Option("--message", help="The message with this id; may be repeated.")
    ] = None,
    unknown: Annotated[
        bool, typer.Option("--unknown", help="Dead letters with files that still have to be read.")
    ] = False,
    limit: Most = 1000,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Send dead letters back to the queue, so that their files are tried again.

    Shows them, and asks. A letter is sent before it is deleted, so nothing is lost. Files that are already loaded are not
    loaded again. Repeat the command to send the rest.
    """
    from forebay.operate.looking.queue import give_back
    from forebay.operate.looking.queue import redrive as send_back

    if not (every or key or message or unknown):
        raise InvalidConfiguration.one(
            "queue redrive", "does not say which letters", "give --all, --key, --message or --unknown"
        )
    if unknown and not lake:
        raise InvalidConfiguration.one("--unknown", "needs --lake", "its ledger says which files are known")
    sqs = _sqs(queue_url)
    dead, found = _dead_letters(queue_url, lake, of, limit, sqs)
    ids = set(message or ())
    chosen = [
        one
        for one in found
        if every
        or one.message_id in ids
        or (unknown and one.unknown)
        or (key and any(is_meant(key, file.bucket, file.key) for file in one.files))
    ]
    _show(chosen, as_json=False)
    go_on, left = bool(chosen) and not dry_run, found
    try:
        if go_on and not yes:
            confirm(f"Send {counted(len(chosen), 'letter')} to {queue_url}?", otherwise="no letter was sent")
        with left_to_do("unsent letters are still in the dead-letter queue; repeat the command"):
            moved = send_back(chosen, dead=dead, to=queue_url, sqs=sqs) if go_on else 0
        left = [one for one in found if not (go_on and one in chosen)]
    finally:
        give_back(dead, left, sqs=sqs)
    tell(chosen=[one.message_id for one in chosen], dead=len(found), sent_back=moved)
    verb, count = ("would be sent back", len(chosen)) if dry_run else ("sent back", moved)
    console.print(f"{verb}: {count:,} of {counted(len(found), 'dead letter')}")
    if moved and lake:
        what = f"queue redrive: sent {counted(moved, 'dead letter')} back to {queue_url}"
        leave_record(lake, what, undo="not needed: a loaded file is not loaded again")
    raise typer.Exit(1 if go_on and moved < len(chosen) else 0)


@app.command()
def refused(
    lake: Lake,
    checkpoint: Checkpoint = "",
    limit: Most = 100,
    drop: Annotated[bool, typer.Option("--drop", help="Delete the copies that are shown.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Show messages that forebay could not understand, with the reasons.

    The ingest job kept a copy of each; the message itself became a dead letter. `forebay status` counts the copies. --drop
    deletes those that are shown, and asks: there is no undo. Exit status 1 if there are any.
    """
    from forebay.operate.looking.refused import drop_refused, refused_messages
    from forebay.operate.named_lake import begun_lake, checkpoint_of

    folder = checkpoint_of(begun_lake(lake), checkpoint)
    found = refused_messages(folder, limit=limit)
    if as_json:
        print_json(map(asdict, found))
    else:
        for one in found:
            console.print(f"{one.message_id}  sent {at(one.sent_at)}", style="bold")
            for line in (*one.reasons, one.body):
                console.print(f"  {line}")
        if not found:
            console.print("no messages")
    if not (drop and found):
        raise typer.Exit(1 if found else 0)
    if not yes:
        confirm(f"Delete {counted(len(found), 'copy')}?", otherwise="no copy was dropped")
    drop_refused(folder, found)
    console.print(f"{counted(len(found), 'copy', 'was')} dropped")
    leave_record(
        lake, f"queue refused: dropped {counted(len(found), 'copy')} of messages", undo="impossible: they are deleted"
    )


def _sqs(queue_url: str) -> Any:
    from forebay.aws.client import queue_client
    from forebay.aws.preflight import check_queue

    if not queue_url:
        raise InvalidConfiguration.one("--queue-url", "has no value", "or set FOREBAY_QUEUE_URL")
    check_queue(queue_url)
    return queue_client(queue_url)


def _dead_letters(queue_url: str, lake: str, of: str, limit: int, sqs: Any) -> tuple[str, list[Letter]]:
    from forebay.operate.looking.queue import dead_letter_url, explain, peek

    dead = dead_letter_url(queue_url, sqs=sqs)
    if dead is None:
        raise InvalidConfiguration.one(f"queue {queue_url}", "has no dead-letter queue", "its redrive policy names one")
    view = None
    if lake:
        from forebay.ledger.lost import has_ledger
        from forebay.operate.named_lake import service_of_queue, view_of

        if has_ledger(lake):
            view, of = view_of(lake), service_of_queue(lake, of)
        else:
            error_console.print(f"{lake} has no ledger yet, so it is not known which of the files were loaded")
    found = peek(dead, sqs=sqs, limit=limit)
    return dead, explain(found, view, of) if view is not None else found


def _show_bodies(letters: Sequence[Letter]) -> None:
    for one in letters:
        error_console.print(f"{one.message_id}: {one.body}")


def _show(letters: Sequence[Letter], as_json: bool, *, waiting: bool = False) -> None:
    """`waiting`: they are not dead yet, so a message that names files needs no explanation."""

    def why(one: Letter) -> str:
        if waiting:
            return "waits" if one.files and not one.refused else one.why
        return f"{one.why}; `forebay queue dlq --drop` deletes it" if one.is_useless else one.why

    if as_json:
        print_json(
            {**asdict(one), "files": [file.uri for file in one.files], "why": why(one), "receipt": None}
            for one in letters
        )
        return
    for one in letters:
        looks = "" if waiting else ", including by this command"
        times = f"received {counted(one.received, 'time')}{looks}"
        console.print(f"{one.message_id}  sent {at(one.sent_at)}, {times}", style="bold")
        for file in one.files[:SHOWN_FILES]:
            console.print(f"  {file.uri}")
        if len(one.files) > SHOWN_FILES:
            console.print(f"  and {len(one.files) - SHOWN_FILES:,} more")
        console.print(f"  {why(one)}")
    if not letters:
        console.print("no messages")
