"""`forebay try`: the tables and columns that sample files would get, and what is rescued, parked and refused. Without Spark."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.options import AsJson
from forebay.cli.show import columns, console, print_json
from forebay.counted import counted

if TYPE_CHECKING:
    from forebay.declaration.service import Service as Declarations
    from forebay.operate.trying.trial import Trial

SHOWN = 10
OF_NO_FEED = (
    "the key of a local file is its path inside the folder that you name: put samples into folders like the prefixes of the "
    "feeds, such as samples/in/a.json for the prefix in/"
)


def try_out(
    samples: Annotated[list[str], typer.Argument(help="Files, folders, or s3:// objects and prefixes (with a /).")],
    service: Annotated[
        str,
        typer.Option(
            envvar="FOREBAY_SERVICE",
            help="The declarations: a folder, service.toml or s3:// prefix; without it, a draft from the samples.",
            show_default=False,
        ),
    ] = "",
    against: Annotated[
        str, typer.Option(help="Other declarations to compare with: show what changes with --service.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show what forebay would do with sample files. Writes nothing.

    Without --service it drafts declarations from the samples, as `forebay tables init --from` does. Exit status 1 if a file
    cannot be read or a record is refused."""
    from forebay.declaration.loading import load_service
    from forebay.operate.trying.samples import read_samples
    from forebay.operate.trying.trial import differences
    from forebay.operate.trying.trial import try_out as tried

    def by(declared: Declarations) -> Trial:
        return tried(declared, read_samples(samples, declared))

    trial = by(load_service(service, strict=True) if service else _drafted(samples, say=not as_json))
    changed = differences(by(load_service(against, strict=True)), trial) if against else None
    if as_json:
        print_json([trial.as_json() | ({} if changed is None else {"differences": changed})])
    elif changed is not None:
        _show_lines(changed or ["nothing changes for these samples"])
    else:
        _show(trial)
    if not trial.is_clean:
        raise typer.Exit(1)


def _drafted(samples: Sequence[str], *, say: bool) -> Declarations:
    """Declarations that fit the samples; the built-in example where nothing in them can be a row."""
    from forebay.declaration.loading import builtin_service, parse_service
    from forebay.errors import InvalidConfiguration
    from forebay.operate.trying.draft import draft

    try:
        service = parse_service({"service.toml": draft(samples, "draft")[0]})
    except InvalidConfiguration:
        return builtin_service()
    if say:
        writes = f"forebay tables init ./my-service {' '.join(f'--from {shlex.quote(one)}' for one in samples)}"
        console.print(f"no --service, so forebay drafted declarations; `{writes}` writes them")
    return service


def _show(trial: Trial) -> None:
    files = columns("file", "outcome", ">records", ">refused", "why")
    for file in trial.files:
        why = f"{file['reason']}: {file['detail']}" if "reason" in file else ""
        files.add_row(
            _short(file["file"]), file["outcome"], f"{file['records']:,}", f"{file['refused']:,}", _short(why)
        )
    console.print(files)
    if any(file.get("reason") == "no-feed" for file in trial.files):
        _show_lines([OF_NO_FEED])
    if trial.left_out:
        count = len(trial.files)
        read = counted(count, "file", "was", of=count + trial.left_out)
        _show_lines([f"{read} read, as a sample. Name fewer files to read all of them"])
    for table in trial.tables:
        console.print(f"\ntable {table.name}: {counted(table.rows, 'row')}")
        found = columns("column", "type", "read from", ">filled", ">do not fit", "such as")
        for c in table.columns:
            filled = "" if c.filled is None else f"{c.filled:,}"
            found.add_row(c.name, c.type, _short(c.source or ""), filled, f"{c.misfits or ''}", _short(c.example or ""))
        console.print(found)
        if table.rescued:
            headline = f"  {counted(table.rescued, 'row', 'has')} rescued values in _rescued"
            _show_lines([headline, *(f"    {example}" for example in table.examples)])
        if table.at_landing:
            _show_lines([f"  {counted(table.at_landing, 'row', 'gets')} the time of landing as event time"])
        _show_some("changed by the transform", table.transformed)
        _show_some("would be dropped as duplicates", table.duplicates)
        if table.state is not None:
            _show_some(f"would win in the state {table.state.name}", table.state.winners)
        _show_lines([f"  checked only by the job: {rule}" for rule in table.unchecked])
    _show_some("parked, because no table accepts them", [f"{p['place']}  {_line(p['record'])}" for p in trial.parked])
    _show_some(
        "refused", [f"{r['place']}  {r['reason']}  {r['detail'] or ''}  {_line(r['record'])}" for r in trial.refused]
    )


def _show_some(what: str, lines: Sequence[str]) -> None:
    if lines:
        more = [f"  and {len(lines) - SHOWN:,} more: --json lists all"] if len(lines) > SHOWN else []
        _show_lines(
            ["", f"{counted(len(lines), 'record')} {what}", *(f"  {line[:200]}" for line in lines[:SHOWN]), *more]
        )


def _show_lines(lines: Sequence[str]) -> None:
    for line in lines:
        console.print(_unbroken(line))


def _line(record: str | None) -> str:
    """A record that may have been written on several lines."""
    return " ".join((record or "").split())


def _short(text: str) -> str:
    """For a table's cell."""
    return _unbroken(text if len(text) <= 100 else text[:99] + "…")


def _unbroken(text: str) -> str:
    """A text of data may have several lines, which would look like lines of the answer."""
    return text.replace("\n", "\\n")
