"""Commands about the tables: which tables exist, and how they are declared."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forebay.address import is_s3
from forebay.cli.answer import answers, tell
from forebay.cli.changing.drop import drop
from forebay.cli.declaring.check import ComparedLake, Sql, begun, check, check_sql
from forebay.cli.looking.health import health
from forebay.cli.looking.history import leave_record
from forebay.cli.options import AsJson, Service, as_place, lake_option
from forebay.cli.show import console, error_console, print_json, show_lost, show_tables
from forebay.cli.usage import must_be_given
from forebay.errors import InvalidConfiguration, Problem
from forebay.threads import in_threads

if TYPE_CHECKING:
    from forebay.declaration.service import Service as Declarations
    from forebay.operate.declaring.drift import Drift
    from forebay.operate.lake_view import LakeView, TableFacts

MOST_SHOWN = 10
"""Lines about samples that a draft does not know."""


app = typer.Typer(invoke_without_command=True)
app.command()(health)
app.command()(drop)

Folder = Annotated[Path, typer.Argument(help="The folder with service.toml.")]
InLake = Annotated[str, lake_option("Where the tables are.")]
InForce = Annotated[
    str,
    typer.Argument(
        callback=as_place,
        help="Where the declarations are in force: s3://bucket/prefix, or a folder such as ./declarations.",
    ),
]


class _Of(StrEnum):
    service = "service"
    table = "table"
    rollup = "rollup"


@app.callback()
def tables(
    context: typer.Context,
    lake: InLake = "",
    service: Service = "",
    as_json: AsJson = False,
) -> None:
    """List the tables, and manage their declarations.

    Without a command: rows, files, bytes and the newest event of each table, by its declared event time, or else by the column
    `event_time`.
    """
    if context.invoked_subcommand is None:
        list_tables(lake, service, as_json)


@app.command("list")
def list_tables(lake: InLake = "", service: Service = "", as_json: AsJson = False) -> None:
    """List the tables: rows, files, bytes and the newest event of each. Exit status 1 for a lost table."""
    must_be_given("tables list", "--lake", lake, "FOREBAY_LAKE")
    from forebay.operate.lake_view import lost_tables
    from forebay.operate.named_lake import view_of

    view = view_of(lake)
    found, lost = _facts(view, service), lost_tables(view)
    if as_json:
        print_json([*map(asdict, found), *({"name": name, "lost_rows": its.rows} for name, its in lost.items())])
    else:
        show_tables(found)
    show_lost(lost)
    raise typer.Exit(1 if lost else 0)


def _facts(view: LakeView, place: str) -> list[TableFacts]:
    declared = _declared(view.lake, place)

    def look(name: str) -> TableFacts | None:
        makers = filter(None, (service.maker_of(name) for service in declared))
        times = (maker.event_time.column for maker in makers if maker.event_time)
        return view.facts(name, newest_by=next(times, "event_time"))

    return [facts for facts in in_threads(look, view.tables()) if facts is not None]


def _declared(lake: str, place: str) -> list[Declarations]:
    """The declarations at this place; without one, all in force in the lake. A lake without any waits for no parser."""
    from forebay.lake.layout import SERVICES
    from forebay.lake.objects import open_objects

    if place:
        from forebay.declaration.loading import load_service

        return [load_service(place)]
    if not open_objects(lake).names(SERVICES):
        return []
    from forebay.declaration.kept.in_force import kept_services

    return kept_services(lake)


@app.command()
@answers
def init(
    folder: Folder,
    samples: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            help="Draft the declarations from these samples: a file, folder or s3:// address; may be repeated.",
        ),
    ] = None,
) -> None:
    """Write the first declarations: the built-in example, or a draft from samples."""
    from forebay.operate.declaring import declarations as declared

    if samples:
        from forebay.declaration.loading import parse_service
        from forebay.operate.trying.draft import draft, service_name

        text, unknown = draft(samples, service_name(folder.resolve().name))
        tables = [table.name for table in parse_service({"service.toml": text}).tables]
        wrote = declared.begin(folder, text)
        tell(wrote=str(wrote), tables=tables, not_in_draft=list(map(str, unknown)))
        console.print(f"wrote {wrote}")
        console.print(f"tables   {', '.join(tables)}")
        for one in unknown[:MOST_SHOWN]:
            error_console.print(f"not in the draft: {one}")
        if len(unknown) > MOST_SHOWN:
            error_console.print(f"and {len(unknown) - MOST_SHOWN:,} more; `forebay try` lists them")
        console.print(f"next     forebay try {shlex.join(samples)} --service {shlex.quote(str(folder))}")
    else:
        wrote = declared.begin(folder)
        tell(wrote=str(wrote))
        console.print(f"wrote {wrote}")
        console.print(f"next     forebay try FILE --service {shlex.quote(str(folder))}")


app.command()(check)


@app.command()
def show(
    table: Annotated[str, typer.Argument(help="A table's name.")], service: Service = "", as_json: AsJson = False
) -> None:
    """Show the declaration of a table as JSON, defaults included; with --json on one line."""
    must_be_given("tables show", "--service", service, "FOREBAY_SERVICE")
    from forebay.declaration.loading import load_service
    from forebay.declaration.service import declaration_of

    declared = declaration_of(load_service(service), table)
    if as_json:
        print_json([declared.model_dump(mode="json")])
    else:
        console.print_json(declared.model_dump_json())


@app.command()
def diff(folder: Folder, place: InForce, lake: ComparedLake = "", as_json: AsJson = False) -> None:
    """Show what would change if these declarations replaced those in force."""
    from forebay.operate.declaring import declarations as declared

    _diff(declared.texts_in_folder(folder), place, begun(lake), as_json=as_json)


@app.command()
@answers
def push(
    folder: Folder,
    place: InForce,
    sql: Sql = True,
    lake: Annotated[str, lake_option("Compare them with the tables of this lake, too.")] = "",
) -> None:
    """Put the declarations in force; a running job uses them from its next batch on.

    With --lake, `forebay history` of that lake shows it. Exit status 1 if a table differs so much that its
    rows wait in the quarantine.
    """
    from forebay.declaration.loading import parse_service
    from forebay.lake.objects import open_objects
    from forebay.operate.declaring import declarations as declared

    texts = declared.texts_in_folder(folder)
    if sql:
        for problem in check_sql(parse_service(texts, strict=True)):
            console.print(f"  {problem}")
    _must_be_in_reach(place, lake)
    lake = begun(lake)
    tell(place=place, pushed=False)
    changes = _diff(texts, place, lake)
    tell(rows_wait=changes.hold_rows)
    if changes.new:
        declared.push(texts, open_objects(place))
        version = parse_service(texts).version
        tell(pushed=True, version=version)
        console.print(f"in force: {place}, version {version}")
        if lake:
            leave_record(lake, f"tables push: version {version} in {place}", undo="push the earlier declarations")
    raise typer.Exit(1 if changes.hold_rows else 0)


@app.command()
@answers
def add(
    folder: Folder,
    name: Annotated[str, typer.Argument(help="The table's name; {field} stands for that field of the record.")],
    where: Annotated[
        list[str] | None, typer.Option(help="What a record must have, such as event=review; may be repeated.")
    ] = None,
) -> None:
    """Add the declaration of a table."""
    from forebay.declaration.loading import load_service
    from forebay.operate.declaring import declarations as declared
    from forebay.operate.trying.sql_names import needs_quotes

    pairs = [one.partition("=") for one in where or []]
    such_as = "such as --where event=review"
    wrong = [Problem(f"--where {key}", "is not field=value", such_as) for key, equals, _ in pairs if not equals]
    if wrong:
        raise InvalidConfiguration(wrong)
    wrote = declared.with_table(folder, name, {key: value for key, _, value in pairs})
    console.print(f"wrote {wrote}")
    service = load_service(str(folder))
    notes = [*declared.tried_before(service, name), *declared.gets_few(service), *needs_quotes(name)]
    tell(wrote=str(wrote), notes=notes)
    for note in notes:
        console.print(f"  {note}")
    console.print(f"next     forebay try FILE --service {shlex.quote(str(folder))}")


@app.command("editor-schema")
def editor_schema(
    of: Annotated[_Of, typer.Argument(help="The kind of file.")] = _Of.service,
    into: Annotated[
        Path | None, typer.Option("--into", help="Write all three into FOLDER/.schema instead.", metavar="FOLDER")
    ] = None,
) -> None:
    """Print the JSON Schema of service.toml, or of a file in tables/ or rollups/.

    An editor with TOML support completes and checks a file whose first line is `#:schema ./.schema/service.json`.
    `forebay tables init` writes that line, and the schemas."""
    from forebay.operate.declaring import declarations as declared

    if into is None:
        print(json.dumps(declared.editor_schema(of.value), indent=2))
    else:
        for file in declared.write_schemas(into):
            console.print(f"wrote {file}")


def _must_be_in_reach(place: str, lake: str) -> None:
    """Of the jobs of a lake in S3: they would not read a folder on this machine."""
    if is_s3(lake) and not is_s3(place):
        what = f"is a folder on this machine, and the lake {lake} is in S3"
        hint = f"its jobs read a place in S3, such as {lake.rstrip('/')}/declarations; --lake '' pushes to the folder"
        raise InvalidConfiguration.one(place, what, hint)


@dataclass(frozen=True)
class _Changes:
    """`hold_rows`: a table of the lake differs, and not only until its next rows."""

    new: bool
    hold_rows: bool


def _diff(texts: dict[str, str], place: str, lake: str, *, as_json: bool = False) -> _Changes:
    """Says the differences, and what they come to for the tables of the lake."""
    from forebay.declaration.loading import parse_service
    from forebay.lake.objects import open_objects
    from forebay.operate.declaring import declarations as declared

    in_force: dict[str, Any] = declared.texts_in_place(open_objects(place))
    before, after = parse_service(in_force) if in_force else None, parse_service(texts, strict=True)
    effects = declared.impact(before, after, compared=bool(lake))
    drifts: tuple[Drift, ...] = ()
    if lake:
        from forebay.operate.declaring.drift import drift_of_lake
        from forebay.operate.declaring.former_archives import unnamed_archives
        from forebay.privacy.known_secret import compared_secret
        from forebay.upkeep.erase.keeping import must_fit_lake

        must_fit_lake(lake, after)
        effects += [*compared_secret(lake, after), *unnamed_archives(lake, after)]
        drifts = drift_of_lake(after, lake).drifts
        effects += [str(drift.problem) for drift in drifts]
    changes = _Changes(in_force != texts, any(not drift.by_itself for drift in drifts))
    if as_json:
        versions = {"from": before.version if before else None, "to": after.version}
        print_json([{"changes": effects, "same_text": in_force == texts, **versions}])
        return changes
    if before is None:
        where = "a deployed job reads the folder `declarations` of its lake"
        console.print(f"nothing is in force at {place} yet; {where}")
    for sentence in effects:
        console.print(f"  {sentence}")
    if not effects:
        console.print("nothing changes" if in_force == texts else "only comments and layout change")
    return changes
