"""`forebay lineage`: the batches of the ledger as OpenLineage events."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.interrupted import left_to_do
from forebay.cli.options import AsJson, Lake, Of, moment
from forebay.cli.show import NONE_ENDED, console, error_console, print_json
from forebay.counted import counted
from forebay.errors import TryAgain

if TYPE_CHECKING:
    from forebay.operate.looking.lineage import BatchLineage

AGAIN = "an event that is sent twice changes nothing"


def lineage(
    lake: Lake,
    to: Annotated[str, typer.Option(help="Send the events to this OpenLineage endpoint instead.", metavar="URL")] = "",
    since: Annotated[
        datetime | None, moment("Batches that ended since this time, in UTC; by default the last day.")
    ] = None,
    until: Annotated[datetime | None, moment("Batches that ended before this time, in UTC.")] = None,
    batch: Annotated[int | None, typer.Option(help="Only this batch, whenever it ended.")] = None,
    of: Of = "",
    namespace: Annotated[str, typer.Option(help="The namespace of the jobs; by default the lake's address.")] = "",
    as_json: AsJson = False,
) -> None:
    """Print batches as OpenLineage events, or send them.

    Prints the events as JSON, one per line, for Marquez, DataHub and others. Each batch is a run, and so is each table that
    it filled. OPENLINEAGE_API_KEY is sent as the key. Sending an event again changes nothing. Exit status 1 if the endpoint
    refuses an event, or if the ledger does not have --batch.
    """
    from forebay.ledger.lost import has_ledger
    from forebay.operate.lake_view import known_service
    from forebay.operate.looking.files import FileChoice
    from forebay.operate.looking.lineage import lineage_of
    from forebay.operate.named_lake import begun_view

    if since is None and batch is None:
        since = (until or datetime.now(UTC).replace(tzinfo=None)) - timedelta(days=1)
    choice = FileChoice(batch=batch, since=since, until=until, service=of or None)
    view = begun_view(lake)
    if of:
        known_service(view, of)
    found = lineage_of(view, choice, namespace=namespace)
    batches = _send(found, to, as_json) if to else _print(found)
    if not batches:
        why = f"no batch ended since {since:%Y-%m-%dT%H:%M}" if batch is None else _absent(batch)
        error_console.print(why if has_ledger(view.lake) else NONE_ENDED)
        raise typer.Exit(0 if batch is None else 1)


def _absent(batch: int) -> str:
    return f"batch {batch} is not in the ledger: `forebay history` lists the batches that ended"


def _print(found: Iterator[BatchLineage]) -> int:
    batches = 0
    for one in found:
        print_json(one.events)
        batches += 1
    return batches


def _send(found: Iterator[BatchLineage], to: str, as_json: bool) -> int:
    from forebay.operate.looking.openlineage import KEY, Endpoint, Refused

    endpoint = Endpoint(to, os.environ.get(KEY, ""))
    events = batches = 0
    with left_to_do(f"repeat the command: {AGAIN}"):
        for one in found:
            try:
                for event in one.events:
                    endpoint.send(event)
                    events += 1
            except Refused as refused:
                sent = f"sent {counted(events, 'event')} of {counted(batches, 'batch')} before"
                next_time = f"continue with --since {one.at:%Y-%m-%dT%H:%M:%S}: {AGAIN}"
                raise TryAgain(f"{refused}; {sent}; {next_time}") from None
            batches += 1
    if as_json:
        print_json([{"to": endpoint.address, "events": events, "batches": batches}])
    else:
        console.print(f"sent {counted(events, 'event')} of {counted(batches, 'batch')} to {endpoint.address}")
    return batches
