"""`forebay privacy report`: an erasure, and the places that may still have records of its people; as sentences, or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any

import typer

from forebay.cli.options import AsJson, Lake, Service
from forebay.cli.show import at, columns, console, print_json, size
from forebay.counted import agreed, counted
from forebay.errors import InvalidConfiguration

Told = Mapping[str, Any]
SHOWN = 20
"""Landed objects that are named."""


def report(
    lake: Lake,
    number: Annotated[int, typer.Argument(min=1, help="The number of the erasure.")],
    service: Service = "",
    as_json: AsJson = False,
) -> None:
    """Show the report of an erasure, and check its signature.

    Shows the rows that left each table, when they are gone from disk, and the landed objects that hold their records. --json
    prints the signed report itself.
    """
    from forebay.declaration.kept.in_force import service_for
    from forebay.operate.lake_view import view_of
    from forebay.operate.people.erase_report import renewed_report

    declared = service_for(service, lake)
    found = renewed_report(view_of(lake), declared, number)
    if found is None:
        raise InvalidConfiguration.one(
            "NUMBER",
            f"service {declared.name} has no erasure {number}",
            "`forebay history --days 365` lists the erasures",
        )
    if as_json:
        print_json([found])
    else:
        _show(found)


def _show(told: Told) -> None:
    people = counted(len(told["people"]), "person")
    console.print(f"erasure {told['erasure']} of {told['service']}, {_time(told['asked_at'])}: {people}")
    shown = columns("table", f">rows {told['rows_became']}", "gone from disk")
    for one in told["tables"]:
        shown.add_row(one["table"], f"{one['rows']:,}", _gone_from_disk(one))
    if told["tables"]:
        console.print(shown)
    for line in _beside_tables(told):
        console.print(line)
    console.print(_gone(told))
    console.print("The signature is right")


def _gone_from_disk(one: Told) -> str:
    if one["refused"]:
        return f"no: the table {one['refused']}"
    if one["gone"]:
        return "yes"
    if one["dropped"]:
        return "no: the table was dropped, and the bucket keeps old versions of it"
    if not one["searched"]:
        return "not searched: the table does not say whose its rows are"
    return f"on {_time(one['due_at'])}"


def _beside_tables(told: Told) -> Iterator[str]:
    if told["vault_rows"]:
        yield f"the vault: {counted(told['vault_rows'], 'row', 'was')} deleted"
    rows, files = told["not_judged"]["rows"], told["not_judged"]["objects"]
    if rows or files:
        yield f"not judged: {counted(rows, 'row')} and {counted(files, 'data file')} that may be of these people"
    if cleared := sum(one["cleared"] for one in told["landing"]):
        yield f"{counted(cleared, 'landed object')} no longer {agreed(cleared, 'holds')} their records"
    left = [one for one in told["landing"] if not one["cleared"]]
    for one in left[:SHOWN]:
        yield f"s3://{one['bucket']}/{one['key']} {one['why'] or 'holds their records'}"
    if len(left) > SHOWN:
        yield f"and {counted(len(left) - SHOWN, 'more landed object')}; --json prints them all"
    if (unread := told["landing_not_read"]) and (objects := unread["objects"]):
        some = f"{counted(objects, 'landed object')} ({size(unread['bytes'])})"
        yield f"{some} may hold records that no table has: `forebay privacy erase --search-landing` reads them"


def _gone(told: Told) -> str:
    if told["is_gone"]:
        return "Nothing of these people is left"
    if told["is_gone_from_tables"]:
        return "Their rows are gone from all tables. Records of them may be left in the landing bucket"
    return f"Rows of these people may be left in tables{_until(told)}"


def _until(told: Told) -> str:
    """If they only wait for maintenance."""
    waits = all(not one["refused"] and not one["dropped"] for one in told["tables"] if not one["gone"])
    return f" until {_time(told['gone_by'])}" if waits and not any(told["not_judged"].values()) else ""


def _time(text: str) -> str:
    return at(datetime.fromisoformat(text))
