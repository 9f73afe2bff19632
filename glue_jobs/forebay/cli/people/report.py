"""`forebay privacy report`: an erasure, and the places that may still have records of its people; as sentences, or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from forebay.cli.options import AsJson, Lake, Service
from forebay.cli.show import at, columns, console, print_json, size
from forebay.counted import agreed, counted
from forebay.errors import Halt, InvalidConfiguration

Report = Mapping[str, Any]
SHOWN = 20
"""Landed objects that are named."""


def report(
    lake: Lake,
    number: Annotated[
        int | None, typer.Argument(min=1, help="The number of the erasure; without it, the newest one.")
    ] = None,
    service: Service = "",
    as_json: AsJson = False,
) -> None:
    """Show the report of an erasure, and check its signature.

    Shows the rows that left each table, when they are gone from disk, and the landed objects that hold their records. --json
    prints the signed report itself.
    """
    from forebay.declaration.kept.in_force import service_for
    from forebay.operate.named_lake import view_of
    from forebay.operate.people.erase_report import renewed_report
    from forebay.upkeep.erase.plan import Erasures

    view, declared = view_of(lake), service_for(service, lake)
    newest = max((one.number for one in Erasures(view.lake, declared.name).plans()), default=0)
    if not newest or (number or 0) > newest:
        named = f" {number}" if number else ""
        problem = f"service {declared.name} has no erasure{named}" + (f"; the newest is {newest}" if newest else "")
        raise InvalidConfiguration.one("NUMBER", problem, "`forebay history --days 365` lists the erasures")
    number = number or newest
    found = renewed_report(view, declared, number)
    if found is None:
        raise Halt(
            f"erasure {number} has not ended, so it has no report yet: `forebay privacy erase` without a subject ends it"
        )
    if as_json:
        print_json([found])
    else:
        _show(found)


def _show(report: Report) -> None:
    people = counted(len(report["people"]), "person")
    console.print(f"erasure {report['erasure']} of {report['service']}, {_time(report['asked_at'])}: {people}")
    shown = columns("table", f">rows {report['rows_became']}", "gone from disk")
    for one in report["tables"]:
        if one["rows"] or _stays(one):
            shown.add_row(one["table"], f"{one['rows']:,}", _gone_from_disk(one))
    if shown.row_count:
        console.print(shown)
    for line in _beside_tables(report):
        console.print(line)
    console.print(_gone(report))
    console.print("The signature is right")


def _gone_from_disk(one: Report) -> str:
    later = f"on {_time(one['due_at'])}" if _lies_ahead(one["due_at"]) else "with the next maintenance"
    return _stays(one) or ("yes" if one["gone"] else later)


def _stays(one: Report) -> str:
    """Why a table does not count as gone, if it is not only a matter of time."""
    if one["refused"]:
        return f"no: the table {one['refused']}"
    if one["dropped"] and not one["gone"]:
        return "no: the table was dropped, and the bucket keeps old versions of it"
    return "" if one["searched"] or one["dropped"] else "not searched: the table does not say whose its rows are"


def _beside_tables(report: Report) -> Iterator[str]:
    if report["vault_rows"]:
        yield f"the vault: {counted(report['vault_rows'], 'row', 'was')} deleted"
    others = sum(not one["rows"] and not _stays(one) for one in report["tables"])
    if others:
        yield f"no rows of them were in {counted(others, 'other table')}"
    rows, files = report["not_judged"]["rows"], report["not_judged"]["objects"]
    if rows or files:
        yield f"not judged: {counted(rows, 'row')} and {counted(files, 'data file')} (docs/personal-data.md, The report)"
    if cleared := sum(one["cleared"] for one in report["landing"]):
        yield f"{counted(cleared, 'landed object')} no longer {agreed(cleared, 'holds')} their records"
    left = [one for one in report["landing"] if not one["cleared"]]
    if left:
        yield f"{counted(len(left), 'landed object')} {agreed(len(left), 'holds')} their records:"
    for one in left[:SHOWN]:
        yield f"  s3://{one['bucket']}/{one['key']} {one['why']}".rstrip()
    if len(left) > SHOWN:
        yield f"  and {len(left) - SHOWN:,} more, which --json prints"
    if (unread := report["landing_not_read"]) and (objects := unread["objects"]):
        some = f"{counted(objects, 'landed object')} ({size(unread['bytes'])})"
        yield f"{some} may hold records that no table has: `forebay privacy erase --search-landing` reads them"


def _gone(report: Report) -> str:
    if report["is_gone"]:
        return "Nothing of these people is left"
    if report["is_gone_from_tables"]:
        return "Their rows are gone from all tables. Records of them may be left in the landing bucket"
    if any(report["not_judged"].values()) or any(map(_stays, report["tables"])):
        return "Rows of these people may be left in tables"
    until = _time(report["gone_by"]) if _lies_ahead(report["gone_by"]) else "the next maintenance"
    return f"Old versions of tables keep their rows until {until}"


def _lies_ahead(text: str) -> bool:
    """Otherwise maintenance deletes the rows the next time that it runs."""
    return datetime.fromisoformat(text) > datetime.now(UTC)


def _time(text: str) -> str:
    return at(datetime.fromisoformat(text))
