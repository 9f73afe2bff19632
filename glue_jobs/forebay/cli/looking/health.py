"""`forebay tables health`: how the tables are."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.batch.reasons import TABLE_FAILED
from forebay.cli.options import AsJson, Lake
from forebay.cli.show import WIDE, columns, console, error_console, is_wide, print_json, show_lost, size, styled
from forebay.counted import agreed, counted

if TYPE_CHECKING:
    from forebay.lake.health import Health
    from forebay.merge.lag import Lag
    from forebay.operate.looking.held import Waiting


def health(
    lake: Lake,
    names: Annotated[list[str] | None, typer.Argument(metavar="[TABLE]...", help="Names; none: all tables.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the health of each table.

    Shows files, the share of small ones, objects in the log, commits since a checkpoint (cp), and files that wait for a
    compaction. Also shows when it was last compacted and vacuumed, and how far a state is behind its changes. Further lines
    name fields without a column, because a limit was reached, and rows in the quarantine, because the table could not be
    written. Exit status 1 for such a table, and for one that cannot be read or is lost.
    """
    from forebay.operate.lake_view import LakeView, known_table, lost_tables
    from forebay.operate.looking.health import health_of, unwritten_tables
    from forebay.operate.named_lake import view_of

    found, unreadable, lags = health_of(lake, names or [])
    waiting = unwritten_tables(lake, names or [])
    view = LakeView(lake.rstrip("/"))
    lost = {} if names else lost_tables(view)
    if names or not found:
        view_of(lake)  # a mistyped place has no tables, either
        for name in names or ():
            known_table(view, name, or_own=True)
    if as_json:
        print_json({**asdict(one), **_lag(lags.get(one.table)), **_waits(waiting.get(one.table))} for one in found)
        there = {one.table for one in found}
        print_json({"table": name, **_lag(lag)} for name, lag in lags.items() if name not in there)
        print_json({"table": name, "lost_rows": its.rows} for name, its in lost.items())
    else:
        _show(found)
        for lag in lags.values():
            console.print(_line(lag))
    show_lost(lost)
    for bad in unreadable:
        error_console.print(styled(f"{bad.name}: {bad.reason}", "red", f" {bad.detail}"))
    for name, waits in waiting.items():
        why = f": {waits.cause}" if waits.cause else ""
        what = f" {counted(waits.rows, 'row', 'waits')} in the quarantine, because it could not be written{why}"
        error_console.print(styled(f"{name}: {TABLE_FAILED}", "red", what))
    raise typer.Exit(1 if lost or unreadable or waiting else 0)


def _show(found: list[Health]) -> None:
    """On a narrow terminal only what fits: a name must still be one that can be typed, and a number one that can be read."""
    wide = is_wide()
    names = (
        ("files", "small", "average", "bytes", "log", "since cp", "waiting") if wide else ("files", "small", "waiting")
    )
    table = columns("table", *(f">{name}" for name in names), "=compacted", *(("=vacuumed",) if wide else ()))
    for one in found:
        cells = {
            "files": f"{one.files:,}",
            "small": f"{100 * one.small_share:.0f} %",
            "average": size(one.average_bytes),
            "bytes": size(one.bytes),
            "log": f"{one.log_objects:,}",
            "since cp": f"{one.since_checkpoint:,}",
            "waiting": f"{one.waiting:,}",
        }
        when = (_at(one.compacted_at), _at(one.vacuumed_at)) if wide else (_at(one.compacted_at),)
        table.add_row(one.table, *(cells[name] for name in names), *when)
    console.print(table)
    for one in found:
        if one.left_out:
            what = f"{counted(one.left_out, 'field')} got no column, such as {one.left_out_such_as}: see _rescued"
            todo = f"raise `new_columns` or `max_columns`, and run: forebay schema settle {one.table}"
            console.print(f"{one.table}: {what}; {todo}")
    if not wide:
        error_console.print(f"bytes, logs and vacuums are shown from {WIDE} columns on, and by --json")


def _waits(waiting: Waiting | None) -> dict[str, object]:
    return {} if waiting is None else {"rows_waiting": waiting.rows, "not_written_because": waiting.cause}


def _lag(lag: Lag | None) -> dict[str, object]:
    if lag is None:
        return {}
    behind: dict[str, object] = {"merged_from": lag.log, "commits_behind": lag.commits, "behind_since": lag.since}
    return {**behind, "trouble": lag.note} if lag.note else behind


def _line(lag: Lag) -> str:
    if lag.note:
        return lag.note
    if lag.commits is None:
        return f"{lag.state}: no recent commit is a merge of {lag.log}; run `forebay merge {lag.state}`"
    if not lag.commits:
        return f"{lag.state}: has all changes of {lag.log}"
    since = f", the first of {_at(lag.since)}" if lag.since else ""
    return (
        f"{lag.state}: {counted(lag.commits, 'commit')} of {lag.log} {agreed(lag.commits, 'is')} not merged yet{since}"
    )


def _at(moment: datetime | None) -> str:
    return moment.strftime("%m-%d %H:%M") if moment else "-"
