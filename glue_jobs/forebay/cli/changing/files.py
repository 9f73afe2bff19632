"""`forebay files` and `forebay tail`: the files of the lake, and their outcomes."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, get_args

import typer

from forebay.cli.answer import answers, tell
from forebay.cli.changing.chosen_files import must_be_an_id
from forebay.cli.changing.forget import bring_back, forget_files
from forebay.cli.interrupted import left_to_do
from forebay.cli.looking.where import object_at, tell_unknown
from forebay.cli.options import SUCH_A_KEY, AsJson, DryRun, Lake, Of, moment
from forebay.cli.show import NONE_ENDED, at, columns, console, error_console, is_wide, print_json
from forebay.counted import counted
from forebay.errors import InvalidConfiguration, meant

app = typer.Typer(help="List files, leave them out, and read them again.", no_args_is_help=True)
app.command("forget")(forget_files)

Address = Annotated[str, typer.Argument(help="The object: s3://bucket/key.", metavar="s3://BUCKET/KEY")]


@app.command("list")
def list_files(
    lake: Lake,
    outcome: Annotated[str, typer.Option(help="Only files with this outcome, such as loaded or missing.")] = "",
    reason: Annotated[str, typer.Option(help="Only files with this reason.")] = "",
    table: Annotated[str, typer.Option(help="Only files with rows in this table.")] = "",
    key: Annotated[str, typer.Option(help=f"Only those with {SUCH_A_KEY}")] = "",
    batch: Annotated[int | None, typer.Option(help="Only files of this batch.")] = None,
    since: Annotated[datetime | None, moment("Loaded since this time, in UTC.")] = None,
    until: Annotated[datetime | None, moment("Loaded before this time, in UTC.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10**9, help="The largest number of files to show.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List files of the ledger, the newest first.

    If `after_load` moved or deleted one of them, a column shows it.
    """
    from forebay.ledger.lost import has_ledger
    from forebay.operate.lake_view import known_table
    from forebay.operate.looking.files import FileChoice, away_of
    from forebay.operate.looking.files import list_files as chosen
    from forebay.operate.named_lake import begun_view

    _must_be_an_outcome(outcome)
    choice = FileChoice(outcome, reason, table, key, batch, since, until)
    view = begun_view(lake)
    found = chosen(view, choice, limit=limit)
    if table and not found:
        known_table(view, table)
    away = away_of(view, found)
    if as_json:
        both = ((file, away.get(file.file_id)) for file in found)
        print_json({"uri": file.uri, **asdict(file), "away": it and asdict(it)} for file, it in both)
        return
    more = (*(("=landed file",) if away else ()), *(("why",) if is_wide() else ()))
    shown = columns("=at", "=outcome", ">records", ">written", *more, "~file")
    for file in found:
        of_it = {
            "=landed file": away[file.file_id].action if file.file_id in away else "-",
            "why": ": ".join(filter(None, (file.reason, file.detail))) or "-",
        }
        numbers = (f"{file.records:,}", f"{file.written:,}")
        shown.add_row(at(file.committed_at), file.outcome, *numbers, *(of_it[name] for name in more), file.uri)
    console.print(shown if found else "no files")
    if not found and not has_ledger(view.lake):
        error_console.print(NONE_ENDED)
    if len(found) == limit:
        error_console.print(f"the newest {limit:,}; --limit shows more")


def tail(
    lake: Lake,
    table: Annotated[str, typer.Option(help="Only files with rows in this table.")] = "",
    outcome: Annotated[str, typer.Option(help="Only files with this outcome, such as loaded or unreadable.")] = "",
    last: Annotated[int, typer.Option(min=1, max=10**9, help="The number of loaded files to show first.")] = 10,
    every_s: Annotated[float, typer.Option(min=0.1, help="Seconds between two checks.")] = 2,
    as_json: AsJson = False,
) -> None:
    """Follow the loaded files until Ctrl-C.

    Prints a line for each file: the time, the outcome, its records, and the tables of its rows.
    """
    from forebay.operate.lake_view import known_table
    from forebay.operate.looking.files import FileChoice, follow
    from forebay.operate.named_lake import begun_view

    _must_be_an_outcome(outcome)
    view = begun_view(lake)
    if table:
        known_table(view, table)
    choice = FileChoice(outcome=outcome, table=table)
    for file in follow(view, choice, last=last, every_s=every_s):
        if as_json:
            print_json([{"uri": file.uri, **asdict(file)}])
        else:
            rows = ", ".join(f"{name} {count:,}" for name, count in file.tables.items()) or file.reason or "no rows"
            console.print(
                f"{at(file.committed_at)}  {file.outcome}  {file.uri}  {counted(file.records, 'record')}: {rows}"
            )
        sys.stdout.flush()


def _must_be_an_outcome(outcome: str) -> None:
    """A mistyped outcome would match no files."""
    from forebay.ledger.entry import Outcome

    known = get_args(Outcome)
    if outcome and outcome not in known:
        hint = meant(outcome, known, f"there are {', '.join(known)}")
        raise InvalidConfiguration.one(f"--outcome {outcome}", "is not an outcome of a file", hint)


@app.command("retry")
@answers
def retry_files(
    lake: Lake,
    queue_url: Annotated[
        str, typer.Option(envvar="FOREBAY_QUEUE_URL", help="The queue that the ingest job reads.", show_default=False)
    ],
    key: Annotated[str, typer.Option(help=f"Only those with {SUCH_A_KEY}")] = "",
    skipped: Annotated[bool, typer.Option("--skipped", help="Undo `forebay files skip` instead.")] = False,
    forgotten: Annotated[bool, typer.Option("--forgotten", help="Undo `forebay files forget` instead.")] = False,
    file_id: Annotated[str, typer.Option(help="With --skipped or --forgotten: only this version.")] = "",
    of: Of = "",
    dry_run: DryRun = False,
) -> None:
    """Announce files again that could not be read: denied, unavailable, missing or poison.

    The ingest job reads them with its next batch. Repeat the command for files that still cannot be read. Skipped files are
    announced only with --skipped, forgotten ones with --forgotten, ignored ones only with --key.
    """
    from forebay.aws.announce import announce
    from forebay.aws.client import queue_client
    from forebay.aws.preflight import check_queue
    from forebay.cli.looking.history import leave_record
    from forebay.operate.looking.files import retried_files, skipped_files
    from forebay.operate.named_lake import view_of

    view = view_of(lake)
    must_be_an_id(file_id)
    if skipped and forgotten:
        raise InvalidConfiguration.one("--skipped", "cannot be combined with --forgotten", "run two commands")
    if not dry_run:
        check_queue(queue_url)
    if forgotten:
        bring_back(lake, queue_url, key, file_id, of, dry_run)
        return
    if skipped:
        found = skipped_files(view, key=key or None, file_id=file_id or None, service=of or None)
        _take_back(lake, key, file_id, dry_run)
    else:
        found = retried_files(view, key=key or None, service=of or None)
    for file in found:
        console.print(file.uri)
    with left_to_do("repeat the command: no file is loaded twice"):
        refused = [] if dry_run else announce(queue_client(queue_url), queue_url, found)
    tell(files=[file.uri for file in found], refused=[str(one) for one in refused])
    for one in refused:
        error_console.print(f"the queue refused {one}")
    if found and not dry_run and not skipped:
        what = f"files retry: announced {counted(len(found) - len(refused), 'file')}, such as {found[0].uri}"
        leave_record(lake, what, undo="not needed: a loaded file is not loaded again")
    console.print(f"{counted(len(found), 'file')} " + ("to announce" if dry_run else "announced again"))
    raise typer.Exit(1 if refused else 0)


@app.command("skip")
@answers
def skip_files(
    lake: Lake,
    address: Annotated[str, typer.Argument(help="The object: s3://bucket/key.", metavar="s3://BUCKET/KEY")] = "",
    file_id: Annotated[
        str, typer.Option(help="Only this version, by its id in the ledger or in `find-missed --json`.")
    ] = "",
) -> None:
    """Skip a file: no batch reads it, and the ledger says `skipped`.

    For a file that is announced or pending, such as one that stops the job. With an address, all versions of the object are
    skipped, including future ones. Rows that are already loaded stay. A file that was refused as a whole leaves the quarantine
    when the job sees it again; the command says how. Repeating the command changes nothing. Undo: `forebay files retry
    --skipped`.
    """
    from forebay.cli.looking.history import leave_record
    from forebay.lake.layout import skips_of
    from forebay.lake.objects import open_objects
    from forebay.ledger.skips import Skip, Skips
    from forebay.operate.looking.files import refused_by
    from forebay.operate.named_lake import begun_view

    if bool(address) == bool(file_id):
        what = "takes an address or --file-id, not both" if address else "names no file"
        raise InvalidConfiguration.one("files skip", what, "" if address else "give an address, or --file-id")
    must_be_an_id(file_id)
    bucket, key = object_at(address) if address else ("", "")
    skip, view = Skip(file_id, bucket, key), begun_view(lake)
    Skips(open_objects(skips_of(lake))).add(skip)
    tell(skipped=str(skip))
    undo = f"forebay files retry --skipped {f'--file-id {file_id}' if file_id else f'--key {shlex.quote(address)}'}"
    later = "" if file_id else ", also later versions"
    console.print(f"{skip} is skipped from the next batch on{later}: `{undo}` ends it")
    if refused := refused_by(view, skip):
        again = " ".join(["forebay replay", *(f"--file-id {one}" for one in refused)])
        console.print(
            f"The quarantine has it as a whole file. `{again}` lets the job see it again, and take it out unread"
        )
    leave_record(lake, f"files skip: skipped {skip}", undo=undo)


def _take_back(lake: str, key: str, file_id: str, dry_run: bool) -> None:
    from forebay.cli.looking.history import leave_record
    from forebay.lake.layout import skips_of
    from forebay.lake.objects import open_objects
    from forebay.ledger.skips import Skips

    skips = Skips(open_objects(skips_of(lake)))
    taken = skips.list(key=key, file_id=file_id)
    tell(taken_back=[str(skip) for skip in taken])
    for skip in taken:
        console.print(f"{skip} is no longer skipped")
    if not taken:
        error_console.print("no such skip: `forebay history` lists the skips that were made")
    if taken and not dry_run:
        skips.remove(taken)
        such_as = ", ".join(map(str, taken[:5]))
        undo = f"forebay files skip for each, such as {taken[0]}"
        leave_record(lake, f"files retry: undid {counted(len(taken), 'skip')}, such as {such_as}", undo=undo)


@app.command("show")
def show_file(lake: Lake, address: Address, as_json: AsJson = False) -> None:
    """Show what the ledger has of each version of a file.

    `forebay where` also looks into the tables. Exit status 1 if it is not in the ledger.
    """
    from forebay.operate.looking.files import versions_of
    from forebay.operate.named_lake import view_of

    view = view_of(lake)
    found = versions_of(view, *object_at(address))
    if as_json:
        print_json({"uri": file.uri, **asdict(file)} for file in found)
    else:
        for file in found:
            console.print(file.uri, style="bold")
            for name, value in asdict(file).items():
                if value not in (None, "", {}) and name not in ("bucket", "key"):
                    console.print(f"  {name:<16} {at(value) if isinstance(value, datetime) else value}")
    if not found:
        tell_unknown(view, address)
