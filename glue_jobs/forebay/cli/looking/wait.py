"""`forebay wait`: until all files of an hour or a day are in."""

from __future__ import annotations

import re
import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from forebay.cli.options import AsJson, Lake, Service, moment
from forebay.cli.show import console, error_console, print_json
from forebay.errors import InvalidConfiguration

NOT_IN_TIME = 4
MINUTE = "%Y-%m-%dT%H:%MZ"
LEFT_OUT = (
    "if a file can never be loaded, `forebay files skip s3://BUCKET/KEY` leaves it out; --file-id, only this version"
)
SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}


def wait(
    lake: Lake,
    name: Annotated[str, typer.Argument(metavar="FEED|TABLE", help="A feed; or a table, for all feeds that fill it.")],
    until: Annotated[datetime, moment("The end of the hour or day, in UTC.")],
    since: Annotated[datetime | None, moment("Also all hours or days since then.")] = None,
    timeout: Annotated[str, typer.Option(help="How long to wait, such as 90s, 30m or 2h; 0: check once.")] = "0",
    every_s: Annotated[float, typer.Option(min=0.1, help="Seconds between two checks.")] = 15,
    service: Service = "",
    as_json: AsJson = False,
) -> None:
    """Wait until all files of an hour or a day are in.

    `complete` in the declaration of a feed defines when that is the case. For each open period, the command says what it waits
    for; --json prints these periods. `forebay files skip` leaves out a file that can never be loaded. Exit status: 0 if all
    are complete, 4 if one is not complete in time.
    """
    from forebay.declaration.kept.in_force import service_for
    from forebay.operate.looking.wait import Open, begins, feeds_meant, is_begun, open_periods, others_of_table
    from forebay.operate.looking.wait import wait as wait_for
    from forebay.operate.named_lake import begun_lake
    from forebay.upkeep.complete.look import periods_of

    timeout_s, end = _seconds(timeout), until.replace(tzinfo=UTC)
    begin = since.replace(tzinfo=UTC) if since else None
    if begin is not None and begin >= end:
        raise InvalidConfiguration.one("--until", "is not after --since")
    if timeout_s and not is_begun(lake, service):
        if service:
            feeds_meant(service_for(service, lake), name)
        error_console.print(f"waits for the first job of {lake}")
        ends = time.monotonic() + timeout_s
        wait_for(lambda: not is_begun(lake, service), timeout_s, every_s)
        timeout_s = max(0.0, ends - time.monotonic())
    lake = begun_lake(lake)
    declared, periods = service_for(service, lake), periods_of(lake)
    feeds = feeds_meant(declared, name)
    if others := others_of_table(declared, name):
        error_console.print(
            f"waits for the feed {name} alone; the table {name} may also have rows of {', '.join(others)}"
        )
    shown: list[str] = []

    def look() -> list[Open]:
        found = open_periods(declared, feeds, [*periods.rows().values()], begin, end)
        lines = [] if as_json else [str(one) for one in found]
        for line in lines:
            if line not in shown:
                error_console.print(line)
        shown[:] = lines
        return found

    found = wait_for(look, timeout_s, every_s)
    if as_json:
        print_json({**asdict(one), "start": one.start.isoformat()} for one in found)
    elif not found:
        console.print(f"{name} is complete from {begins(feeds, begin, end):{MINUTE}} until {end:{MINUTE}}")
    if not as_json and any(one.waits_for_files for one in found):
        error_console.print(LEFT_OUT)
    raise typer.Exit(NOT_IN_TIME if found else 0)


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d{1,6}) ?(s|m|min|h|d|)", text.strip())
    if found is None:
        raise InvalidConfiguration.one(f"--timeout {text}", "is not a duration", "such as 90s, 30m or 2h")
    return int(found[1]) * SECONDS[found[2] or "s"]
