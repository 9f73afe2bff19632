"""`forebay privacy`: find personal data that nobody declared, make the secret of tokens, and erase people."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forebay.cli.answer import answers, tell
from forebay.cli.confirm import confirm
from forebay.cli.interrupted import left_to_do
from forebay.cli.looking.history import leave_record
from forebay.cli.options import AsJson, DryRun, Lake, Service, Yes, lake_option
from forebay.cli.people.report import report
from forebay.cli.people.vault import rotate, show
from forebay.cli.show import at, columns, console, error_console, print_json, size
from forebay.counted import agreed, counted
from forebay.errors import Halt, InvalidConfiguration
from forebay.spark.signals import interrupts_wait

if TYPE_CHECKING:
    from forebay.operate.people.outlook import Outlook

app = typer.Typer(help="Find personal fields, and erase people.", no_args_is_help=True)
ApartFrom = Annotated[str, lake_option("The lake: the secret must be in another place.")]
NOT_READ = "is not read without --search-landing"
FINISHES = "finishes this table, then stops; a second Ctrl-C stops at once. Repeat the command to continue"


@app.callback()
def privacy() -> None:
    """Find personal fields, and erase people."""


@app.command()
def scan(
    lake: Lake,
    table: Annotated[str, typer.Argument(help="The table's name, or quarantine, or parked.")],
    rows: Annotated[int, typer.Option(min=1, help="The number of rows to read.")] = 10_000,
    as_json: AsJson = False,
) -> None:
    """List the fields of a table whose values look personal. This is a guess, so check each of them.

    Finds e-mail and IP addresses, card and phone numbers, and long ids, also in _rescued and held records. No value is shown.
    """
    from forebay.operate.named_lake import view_of
    from forebay.operate.people.personal import scanned

    scan = scanned(view_of(lake), table, rows)
    if as_json:
        print_json(map(asdict, scan.found))
        return
    if not scan.found:
        console.print(f"nothing in {counted(scan.rows, 'row')} looks personal")
        return
    shown = columns("column", "field", "looks like", ">values", ">of")
    for one in scan.found:
        shown.add_row(one.column, one.field, one.kind, f"{one.values:,}", f"{one.of:,}")
    console.print(shown)


@app.command()
@answers
def secret(
    address: Annotated[str, typer.Argument(help="Where to put it: s3://BUCKET/KEY, or the absolute path of a file.")],
    lake: ApartFrom = "",
) -> None:
    """Make the secret of tokens, unless it already exists.

    Let only the ingest job read it, and those who erase people. Anyone who has it can guess values and compare their tokens.
    With another secret, the same values get other tokens, so the command never overwrites one. Undo: delete the object,
    before the first token is made.
    """
    from forebay.address import overlap
    from forebay.declaration.privacy import is_address
    from forebay.privacy.secret import make_secret, secret_at

    if not is_address(address):
        raise InvalidConfiguration.one("ADDRESS", f"{address!r} is neither s3://BUCKET/KEY nor an absolute path")
    if lake and overlap(address, lake):
        hint = "name a place that readers of the lake cannot read"
        raise InvalidConfiguration.one("ADDRESS", f"{address} is in the lake {lake}, or around it", hint)
    if make_secret(address):
        tell(made=address)
        console.print(f"made {address}; let only the ingest job read it, and those who erase people")
    elif secret_at(address):
        raise Halt(f"{address} holds a secret already, and it stays")


@app.command()
def erase(
    lake: Lake,
    people: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SUBJECT]...", help="Values of the field that identifies the person."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A file with one subject a line, taken literally; - reads standard input."),
    ] = None,
    service: Service = "",
    now: Annotated[
        bool, typer.Option("--now", help="Delete old files at once; nobody can read older versions afterwards.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also erase placeholders, such as unknown, and very common subjects.")
    ] = False,
    search_landing: Annotated[
        bool,
        typer.Option(
            "--search-landing",
            help="Also read landed objects that may hold records which no table has. Without a subject: of all people that "
            "were ever erased. --dry-run says how much is read.",
        ),
    ] = False,
    wait_s: Annotated[
        float, typer.Option(min=0, help="How long to wait for a batch, a compaction or another erasure.")
    ] = 600,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Erase people: remove their rows from all tables, the quarantine and the parked records.

    Records of them that arrive later stay out, too. Ingest continues in the meantime. Maintenance deletes files of older
    versions when the table's time travel has ended; --now deletes them at once. If you repeat the command, it first finishes
    an interrupted erasure; without a subject, it does only that. The signed report names the objects in the landing bucket
    that hold their records, and counts those that were not read. There is no undo.
    """
    from forebay.declaration.kept.in_force import service_for
    from forebay.operate.named_lake import view_of
    from forebay.operate.people import erase as erasing
    from forebay.operate.people.landing import clear_again
    from forebay.operate.people.outlook import everybody_erased, last_version, look

    view, declared = view_of(lake), service_for(service, lake)
    who, wanted, stay = _people(people or [], source), list[str](), False
    outlook = look(view, declared, who)
    if (last := last_version(view, declared)) and last != declared.text_version:
        what = f"the newest file was loaded by declarations {last}, and these are {declared.text_version}"
        error_console.print(f"{what}: late records stay out once the ingest job has these")
    if not dry_run:
        for plan in erasing.unfinished(view, declared):
            error_console.print(f"continues erasure {plan.number}, of {counted(len(plan.tokens), 'person')}")
            stay |= _carry_out(view, declared, plan, wait_s, as_json=as_json)
    if outlook.unseen:
        what, total = "is read" if search_landing else NOT_READ, sum(one.bytes for one in outlook.unseen)
        error_console.print(_not_read(len(outlook.unseen), total, what))
    if who:
        _must_be_erasable(outlook, force=force)
        if dry_run or not as_json:
            _show(outlook, as_json=as_json)
        left_out = () if force else (*outlook.unknown, *(() if search_landing else outlook.known_before))
        wanted = [token for person, token in outlook.tokens.items() if person not in left_out]
        nobody = len(outlook.unknown) == len(outlook.tokens)
        if dry_run or (nobody and not wanted):
            raise typer.Exit(1 if nobody else 0)
        if wanted and not yes:
            confirm(f"Erase {counted(len(wanted), 'person')}? Nobody can bring the rows back.")
    elif search_landing:
        wanted = sorted(everybody_erased(view, declared))
        error_console.print(f"searches for the records of {counted(len(wanted), 'person')} erased before")
    if wanted and not dry_run:
        plan = erasing.begin(view, declared, wanted, search_landing=search_landing)
        stay |= _carry_out(view, declared, plan, wait_s, as_json=as_json)
    if not dry_run:
        went = erasing.erase_now(view, declared, due_only=not now, wait_s=wait_s)
        if went:
            error_console.print(f"{counted(went, 'object')} that held them {agreed(went, 'was')} deleted")
        if not who:
            since = clear_again(view, declared, search=search_landing, wait_s=wait_s, tell=error_console.print)
            if since:
                hold = agreed(since, "holds records of erased people")
                error_console.print(f"{counted(since, 'more landed object')} no longer {hold}")
    if stay:
        raise typer.Exit(1)


app.command()(report)
app.command()(show)
app.command()(rotate)


def _people(named: list[str], source: Path | None) -> list[str]:
    if source is None:
        return named
    try:
        text = (sys.stdin.buffer.read() if str(source) == "-" else source.read_bytes()).decode()
    except (OSError, UnicodeDecodeError) as why:
        raise InvalidConfiguration.one(f"--from {source}", f"cannot be read: {why}") from None
    lines = (line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n"))
    return [*named, *(line for line in lines if line.strip())]


def _shown(person: str) -> str:
    """Blanks at an end, and signs that show nothing, are part of a subject."""
    return person if person == person.strip() and person.isprintable() else repr(person)


def _must_be_erasable(outlook: Outlook, *, force: bool) -> None:
    hint = "" if force else "; --force keeps late records out"
    for person in outlook.unknown:
        error_console.print(f"{_shown(person)}: no row of this person is kept{hint}")
    for person in outlook.known_before:
        error_console.print(f"{_shown(person)}: is erased already")
    if outlook.common and not force:
        person, why = next(iter(outlook.common.items()))
        raise InvalidConfiguration.one(
            f"SUBJECT {person!r}", f"is probably not a person: it {why}", "--force erases it"
        )


def _show(outlook: Outlook, *, as_json: bool) -> None:
    found = [
        {"table": name, "rows": sum(tally.by_token.values()), "of": tally.rows, "people": len(tally.by_token)}
        for name, tally in outlook.tables.items()
    ]
    if as_json:
        print_json(found)
        return
    if not found:
        console.print("no table has rows of these people")
        return
    shown = columns("table", ">rows", ">of", ">people")
    for one in found:
        shown.add_row(str(one["table"]), *(f"{one[name]:,}" for name in ("rows", "of", "people")))
    console.print(shown)


def _landing_of(done: Any) -> str:
    cleared = sum(one["cleared"] for one in done["landing"])
    holding = len(done["landing"]) - cleared
    hold = f"{counted(holding, 'object')} in the landing bucket {agreed(holding, 'holds')} their records"
    hold += f", and {cleared:,} {agreed(cleared, 'was')} cleared of them" if cleared else ""
    left = done["landing_not_read"] or {"objects": 0}
    return f"{hold}; {_not_read(left['objects'], left['bytes'], NOT_READ)}" if left["objects"] else hold


def _not_read(objects: int, total: int, what: str) -> str:
    landed = f"{counted(objects, 'landed object')} ({size(total)})"
    return f"{landed} may hold records that no table has, and {agreed(objects, what)}"


def _carry_out(view: Any, declared: Any, plan: Any, wait_s: float, *, as_json: bool) -> bool:
    """Whether a table stays unchanged."""
    from forebay.operate.people import erase as erasing

    with left_to_do("repeat the command: it finishes this erasure first"), interrupts_wait(FINISHES):
        done = erasing.carry_out(view, declared, plan, wait_s=wait_s, tell=lambda line: error_console.print(line))
    rows = sum(one["rows"] for one in done["tables"])
    what = f"privacy erase: {counted(len(plan.tokens), 'person')}, {counted(rows, 'row')}, erasure {plan.number}"
    leave_record(view.lake, what, undo="impossible: they are erased")
    stay = any(one["refused"] for one in done["tables"])
    if as_json:
        print_json([done])
        return stay
    gone_by = at(datetime.fromisoformat(done["gone_by"]))
    console.print(
        f"erasure {plan.number}: {counted(rows, 'row', 'is')} {done['rows_became']}, and gone from disk by {gone_by}; "
        f"{_landing_of(done)}; `forebay privacy report {plan.number}`"
    )
    for one in done["tables"]:
        if one["refused"]:
            error_console.print(f"{one['table']}: stays unchanged: it {one['refused']}")
    if dropped := [one["table"] for one in done["tables"] if one["dropped"]]:
        kept = f"the bucket keeps old versions of dropped tables, which are not searched: {', '.join(dropped)}"
        gone = "Once the bucket's lifecycle rule has deleted them, run `forebay privacy erase` without a subject"
        error_console.print(f"{kept}. {gone}")
    if unsearched := [one["table"] for one in done["tables"] if not one["searched"] and not one["dropped"]]:
        error_console.print(f"do not say whose their rows are, and stay: {', '.join(unsearched)}")
    if rows := sum(one["rows_not_judged"] for one in done["tables"] if one["searched"]):
        error_console.print(f"{counted(rows, 'row', 'keeps')} a text that is not JSON, so the person is unknown")
    return stay
