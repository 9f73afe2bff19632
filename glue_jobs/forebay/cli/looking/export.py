"""`forebay export`: the changes of a table, as files for other clouds and tools."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.interrupted import left_to_do
from forebay.cli.options import AsJson, Lake, Service, version_or_moment
from forebay.cli.show import console, print_json
from forebay.counted import counted

if TYPE_CHECKING:
    from forebay.operate.exporting.manifest import Manifest


class Format(StrEnum):
    parquet = "parquet"
    json = "json"


def export(
    lake: Lake,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The name of a table with a change feed.")],
    to: Annotated[str, typer.Option(help="Where the files go: s3://bucket/prefix, or a folder.")],
    since: Annotated[
        str, typer.Option(help="Begin after this version, or this time in UTC; without it, with the whole table.")
    ] = "",
    form: Annotated[Format, typer.Option("--format", help="The format of the files.")] = Format.parquet,
    service: Service = "",
    as_json: AsJson = False,
) -> None:
    """Write what changed in a table as files for other tools.

    The first export writes the whole table, or the changes after --since. Each later export writes the changes since the last
    one. An interrupted export continues when you repeat the command. Each step has a manifest; ignore files that no manifest
    names.
    """
    from forebay.declaration.kept.in_force import service_for
    from forebay.operate.exporting.export import export as write
    from forebay.operate.named_lake import view_of

    began = version_or_moment("--since", since) if since else None
    steps, view, declared = 0, view_of(lake), service_for(service, lake)
    with left_to_do("the steps above are complete; repeat the command to continue"):
        for step in write(view, declared, table, to, since=began, form=form.value):
            steps += 1
            _show(table, step, as_json)
    if not steps and not as_json:
        console.print(f"{table}: nothing new since the last export")


def _show(table: str, step: Manifest, as_json: bool) -> None:
    if as_json:
        print_json([asdict(step)])
        return
    what = "whole" if step.since < 0 else f"changes after version {step.since}"
    written = f"{counted(step.rows, 'row')} in {counted(len(step.files), 'file')}"
    console.print(f"{table}: {what}, up to version {step.version}: {written}")
