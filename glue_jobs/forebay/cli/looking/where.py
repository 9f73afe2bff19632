"""`forebay where`: the life of a file, or the file that a row came from."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.options import AsJson, Lake
from forebay.cli.show import at, console, error_console, print_json, size
from forebay.counted import counted
from forebay.errors import InvalidConfiguration

if TYPE_CHECKING:
    from forebay.operate.lake_view import LakeView
    from forebay.operate.looking.files import LedgerFile
    from forebay.operate.looking.record import Traced
    from forebay.operate.looking.where import Life


def where(
    lake: Lake,
    address: Annotated[str, typer.Argument(help="The object, s3://bucket/key; with --row, a value.")],
    row: Annotated[str, typer.Option(help="A table: find the file of the row with this value there.")] = "",
    by: Annotated[str, typer.Option(help="With --row: the column that has the value.")] = "event_id",
    text: Annotated[
        bool, typer.Option("--text", help="With --row: read its record in the landed file, and show its declaration.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what became of a file, or which file a row came from.

    Shows each step from the notification to the rows, and counts the rows in the tables. Exit status 1 if the ledger does not
    know the file, if rows are missing, or if --text finds no record.
    """
    from forebay.operate.looking.where import file_of_row, lives_of
    from forebay.operate.named_lake import begun_view

    if text and not row:
        raise InvalidConfiguration.one("--text", "needs --row", "name the table of the row")
    view = begun_view(lake)
    places = file_of_row(view, row, by, address) if row else [object_at(address)]
    if not places:
        refused = f"`forebay quarantine show --table {row}` shows refused records"
        error_console.print(f"table {row}: no row has {address} in its column {by}; {refused}")
        raise typer.Exit(1)
    lives = [life for place in places for life in lives_of(view, *place)]
    traced = _traced(view, row, by, address, lives) if text else {}
    if as_json:
        print_json(
            {"uri": life.file.uri, **asdict(life), "well": life.well}
            | ({"row": asdict(found)} if (found := traced.get(life.file.file_id)) else {})
            for life in lives
        )
    else:
        for life in lives:
            _show_life(life)
            if found := traced.get(life.file.file_id):
                _show_traced(found, life.file, row)
    if not lives:
        tell_unknown(view, address)
    well = all(life.well for life in lives) and not any(found.missing for found in traced.values())
    raise typer.Exit(0 if well else 1)


def _traced(view: LakeView, table: str, column: str, value: str, lives: list[Life]) -> dict[str, Traced]:
    from forebay.operate.looking.record import MOST_ROWS, rows_traced

    traced, more = rows_traced(view, table, column, value, [life.file for life in lives])
    if more:
        error_console.print(f"more rows have this value; the records of the first {MOST_ROWS} are shown")
    return traced


def object_at(address: str) -> tuple[str, str]:
    """The bucket and the key of s3://bucket/key."""
    bucket, _, key = address.removeprefix("s3://").partition("/")
    if not address.startswith("s3://") or not bucket or not key:
        raise InvalidConfiguration.one(address, "is not the address of an object", "write s3://bucket/key")
    return bucket, key


def tell_unknown(view: LakeView, address: str) -> None:
    from forebay.upkeep.accounts.open_batches import open_batches

    _, key = object_at(address)
    for batch in open_batches(view.lake, view.has_batch):
        if key in batch.keys:
            todo = "the running job finishes it, or the next start of the job"
            error_console.print(f"{address}: it is not in the ledger yet. It is in {batch}: {todo}.")
            raise typer.Exit(1)
    error_console.print(
        f"{address}: it is not in the ledger. It waits in the queue (`forebay queue peek`), or nobody announced it "
        "(`forebay find-missed --settle-hours 0 --dry-run`), or it is misspelled."
    )
    raise typer.Exit(1)


def _show_life(life: Life) -> None:
    file = life.file
    of_it = [size(file.size)] if file.size is not None else []
    of_it += [f"version {file.version_id}"] if file.version_id else []
    console.print(f"{file.uri}  {', '.join(of_it)}".rstrip(), style="bold")
    for line in _lines(life, file):
        console.print(f"  {line}")


def _show_traced(found: Traced, file: LedgerFile, table: str) -> None:
    rule, version = found.rule, f", version {file.version_id}" if file.version_id else ""
    lines = [f"object      etag {file.etag}{version}"]
    for record in found.records:
        lines.append(f"record      line {record.line}, byte {record.byte_offset}: {record.text}")
        if record.table != table:
            lines.append(f"            these declarations send it to {record.table or 'no table'}")
    if found.not_read is not None:
        why = ": ".join(filter(None, [found.not_read.reason, found.not_read.detail]))
        lines.append(f"not read    {found.not_read.outcome}  ({why})")
    elif found.missing:
        lines.append(f"not there   no record is on line {', '.join(map(str, found.missing))}")
    where = f"  where {json.dumps(rule.where)}" if rule.where else ""
    where += f"  where_sql {rule.where_sql}" if rule.where_sql else ""
    lines.append(f"declared    {rule.name or 'by no table'}{where}  in declarations {rule.version}")
    lines += [f"feeds       {', '.join(rule.feeds)}"] if rule.feeds else []
    for line in lines:
        console.print(f"  {line}")


def _lines(life: Life, file: LedgerFile) -> list[str]:
    if file.outcome == "forgotten":
        lines = _lines(life, replace(file, outcome="loaded", reason=None, detail=None, dropped=0))
        return [*lines, f"forgotten   {file.detail}" + (f"  ({file.reason})" if file.reason else "")]
    deleted = f"the deletion of its key at {at(life.deleted_at)}" if life.deleted_at else ""
    is_superseded = file.outcome == "superseded" and file.superseded_by
    left = [f"superseded  by {deleted or f'file {file.superseded_by}'}"] if is_superseded else []
    if left and file.records:
        return [*_lines(life, replace(file, outcome="loaded", reason=None, dropped=0, superseded_by=None)), *left]
    why = ": ".join(filter(None, [file.reason, file.detail]))
    lines = [
        f"landed      {at(file.event_time)}"
        if file.outcome != "deleted"
        else f"removed     {at(file.event_time)}  from the landing bucket",
        f"claimed     {at(file.claimed_at)}  batch {file.batch} of {file.service}, declarations {file.service_version}",
        f"{file.outcome:<11} {at(file.committed_at)}  {counted(file.records, 'record')}"
        + (f"  ({why})" if why else ""),
    ]
    for one in life.tables:
        known = [f"version {one.version}"] if one.version is not None else []
        commit = ", ".join([*known, *(["by a retry"] if one.by_retry else [])])
        commit = commit or "version unknown: its log no longer has it"
        moved = f", compacted {counted(one.rewritten, 'time')} since" if one.rewritten else ""
        rows = counted(one.rows, "row") if one.all_there else counted(one.rows_now, "row", "is there", of=one.rows)
        lines.append(f"table       {one.table}: {rows}, {commit}{moved}")
    for reason, count in life.quarantined.items():
        detail = life.details.get(reason)
        lines.append(f"quarantine  {reason}: {count:,}" + (f"  ({detail})" if detail and detail != file.detail else ""))
    if life.parked:
        lines.append(f"parked      {counted(life.parked, 'record')} that no table wanted")
    if file.dropped:
        lines.append(f"dropped     {counted(file.dropped, 'record')}, by a rule or a command")
    if life.away is not None:
        lines.append(
            f"{life.away.action:<11} {at(life.away.at)}" + (f"  to {life.away.place}" if life.away.place else "")
        )
    return [*lines, *left]
