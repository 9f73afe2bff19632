"""`forebay history`: the changes of a lake by time, and the record that an operator's command leaves."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from forebay.cli.options import AsJson, Lake, Stack
from forebay.cli.show import NONE_ENDED, at, columns, console, error_console, is_wide, print_json
from forebay.errors import ForebayError


def history(
    lake: Lake,
    days: Annotated[float, typer.Option(min=0, max=100_000, help="How many days to look back.")] = 1,
    table: Annotated[str, typer.Option(help="Also each version of this table.")] = "",
    all_tables: Annotated[bool, typer.Option("--all-tables", help="Also changes to all tables.")] = False,
    stack: Stack = "",
    limit: Annotated[int, typer.Option(min=1, help="The largest number of lines to show, newest first.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List what happened, and when.

    Shows batches and operators' commands in one timeline. --table adds each version of the table. --all-tables adds those of
    all tables, except versions that only add rows. --stack adds deployments and alarms. If something can be undone, its line
    has the command.
    """
    from forebay.cli.looking.status import deployment
    from forebay.ledger.lost import has_ledger
    from forebay.operate.looking.history import history_of
    from forebay.operate.named_lake import begun_view

    view, since = begun_view(lake), datetime.now(UTC) - timedelta(days=days)
    where, tell = deployment(stack), error_console.print
    found = history_of(view, since=since, table=table, all_tables=all_tables, on=where, untold=tell)
    if as_json:
        print_json(map(asdict, found[:limit]))
        return
    wide = is_wide()
    shown = columns("=at", "what", *(("who", "undo") if wide else ()))
    for one in found[:limit]:
        more = (("by", one.who), ("undo:", one.undo))
        below = "" if wide else "".join(f"\n  {name} {value}" for name, value in more if value)
        shown.add_row(at(one.at), f"{one.what}{below}", *((one.who or "-", one.undo or "-") if wide else ()))
    console.print(shown)
    if not has_ledger(view.lake):
        error_console.print(NONE_ENDED)
    if len(found) > limit:
        error_console.print(f"{limit:,} of {len(found):,}; --limit shows more")


def leave_record(lake: str, what: str, *, undo: str = "") -> None:
    """After the verb was carried out: that it cannot be recorded must not look as if it was not done."""
    from botocore.exceptions import BotoCoreError, ClientError

    from forebay.operate.looking.history import record_verb

    try:
        record_verb(lake, what, undo=undo)
    except (ForebayError, ClientError, BotoCoreError, OSError) as refused:
        error_console.print(f"done, but `forebay history` will not list it: {refused}")
