"""`forebay files forget`: removes the rows of files from every table. `files retry --forgotten` restores them."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.answer import tell
from forebay.cli.changing.chosen_files import must_be_an_id
from forebay.cli.changing.replay import announce_all, show_rows
from forebay.cli.confirm import confirm
from forebay.cli.looking.history import leave_record
from forebay.cli.options import AsJson, DryRun, Lake, Of, QueueUrl, Yes
from forebay.cli.show import console, error_console, print_json
from forebay.cli.usage import must_be_given
from forebay.counted import counted
from forebay.errors import InvalidConfiguration

if TYPE_CHECKING:
    from collections.abc import Sequence

SHOWN = 5
LOOK_AGAIN = "they remain unchanged. Repeat the command, and check what it shows"
TAKES_OUT = "To keep only one of them, remove the later one: `forebay files forget --file-id {}`"
REPEAT = "repeat the command to announce the rest"


def forget_files(
    lake: Lake,
    addresses: Annotated[
        list[str] | None,
        typer.Argument(help="Objects, with all their versions; * matches any text.", metavar="s3://BUCKET/KEY..."),
    ] = None,
    queue_url: QueueUrl = "",
    file_id: Annotated[
        list[str] | None, typer.Option(help="Only this version, by its id in the ledger; may be repeated.")
    ] = None,
    of: Of = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove the rows of files from every table, such as those of test data.

    Shows which rows would leave, and asks. With its next batch, the ingest job removes the rows from the tables, the
    quarantine, the parked records and the vault. The ledger then says `forgotten`, and only an operator can load the files
    again. If a producer puts the same bytes under the same key again, they stay out. An earlier version that the file replaced
    is not restored. Repeat the command after an interruption. Undo: `forebay files retry --forgotten`, as long as S3 has the
    files.
    """
    from forebay.aws.preflight import check_queue
    from forebay.ledger.entry import FORGET
    from forebay.operate.changing.forget import computed_from, to_forget
    from forebay.operate.changing.replay import mark
    from forebay.operate.named_lake import view_of

    if not addresses and not file_id:
        raise InvalidConfiguration.one("files forget", "names no file", "give an address, or --file-id")
    for address in addresses or ():
        if not re.fullmatch("s3://[^/]+/.+", address):
            raise InvalidConfiguration.one(address, "is not the address of an object", "write s3://bucket/key")
    for one in file_id or ():
        must_be_an_id(one)
    if not dry_run:
        must_be_given("files forget", "--queue-url", queue_url, "FOREBAY_QUEUE_URL")
    view = view_of(lake)
    found = to_forget(view, addresses or (), file_id or (), of)
    computed = computed_from(view, found.rows)
    if as_json:
        facts = {"files": len(found.files), "records": found.records, "rows": found.rows, **found.held}
        print_json([{**facts, "computed_from": computed, "left_out": found.left_out, "dry_run": dry_run}])
    else:
        of_them = f"{counted(len(found.files), 'file')} of {counted(found.records, 'record')}"
        console.print(f"{of_them} to forget. These rows leave:")
        show_rows(found)
        if computed:
            console.print(f"the next merge also removes them from {' and '.join(computed)}")
    if dry_run or not found.files:
        return
    check_queue(queue_url)
    if not yes:
        confirm("Remove these rows from the tables?")
    count = mark(view, found, FORGET)
    rows = ", ".join(found.rows) or "no table"
    leave_record(
        lake,
        f"files forget: {counted(count, 'file')}, {counted(found.records, 'record')} in {rows}",
        undo=_undo(addresses or (), file_id or ()),
    )
    announce_all(found.files, queue_url, again=REPEAT)
    error_console.print("the ingest job removes their rows; `forebay files list --outcome forget` shows what is left")
    if changed := len(found.files) - count:
        error_console.print(
            f"{counted(changed, 'file', of=len(found.files))} changed since this was shown: {LOOK_AGAIN}"
        )
        raise typer.Exit(1)


def _undo(addresses: Sequence[str], file_ids: Sequence[str]) -> str:
    """Commands that can be typed; of many, the first ones."""
    chosen = [*(f"--key {shlex.quote(one)}" for one in addresses), *(f"--file-id {one}" for one in file_ids)]
    more = f"; and so on, {counted(len(chosen), 'time')}" if len(chosen) > SHOWN else ""
    return "; ".join(f"forebay files retry --forgotten {one}" for one in chosen[:SHOWN]) + more


def _forget_again(file_ids: Sequence[str]) -> str:
    """The command that forgets the files again, by id: an address also means other versions."""
    more = f" and so on, {counted(len(file_ids), 'time')}" if len(file_ids) > SHOWN else ""
    return "forebay files forget" + "".join(f" --file-id {one}" for one in file_ids[:SHOWN]) + more


def bring_back(lake: str, queue_url: str, key: str, file_id: str, of: str, dry_run: bool) -> None:
    """Files that were forgotten are read again; those that still stand, in place of their rows."""
    from forebay.ledger.entry import FORGET
    from forebay.operate.changing.forget import forgotten
    from forebay.operate.changing.replay import later_versions, mark
    from forebay.operate.named_lake import view_of

    if not (key or file_id):
        raise InvalidConfiguration.one("--forgotten", "names no file", "give --key or --file-id; --key '*' means all")
    view = view_of(lake)
    found = forgotten(view, key=key, file_id=file_id, service=of)
    tell(files=[file.uri for file in found.files])
    for file in found.files:
        console.print(file.uri)
    console.print(f"{counted(len(found.files), 'forgotten file', 'would be' if dry_run else 'is')} read again")
    if dry_run or not found.files:
        return
    mark(view, found)
    such_as = f"{counted(len(found.files), 'forgotten file')}, such as {found.files[0].uri}"
    leave_record(lake, f"files retry: restored {such_as}", undo=_forget_again([file.file_id for file in found.files]))
    announce_all(found.files, queue_url, again=REPEAT)
    for one in later_versions(view, [file for file in found.files if file.outcome == FORGET]):
        error_console.print(f"{one.uri}: a later version was loaded as well. {TAKES_OUT.format(one.file_id)}")
