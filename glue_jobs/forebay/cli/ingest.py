"""`forebay ingest` and `forebay stop`: fill the lake, and leave off."""

from __future__ import annotations

import threading
from typing import Annotated, Any

import typer

from forebay.cli.options import Lake
from forebay.cli.show import console
from forebay.errors import Misdeclared
from forebay.settings import IngestSettings, problems_of

__all__ = ["ingest", "stop"]


def _meaning(name: str) -> str:
    text = IngestSettings.model_fields[name].description or ""
    return text[:1].upper() + text[1:] + "."


def ingest(
    lake: Lake,
    queue_url: Annotated[str, typer.Option(envvar="FOREBAY_QUEUE_URL", help=_meaning("queue_url"), show_default=False)],
    service: Annotated[str, typer.Option(envvar="FOREBAY_SERVICE", help=_meaning("service"))] = "",
    checkpoint: Annotated[str, typer.Option(help=_meaning("checkpoint"))] = "",
    drain: Annotated[bool, typer.Option("--drain", help=_meaning("drain"))] = False,
    trigger_s: Annotated[float, typer.Option(help=_meaning("trigger_s"))] = 60,
    max_files_per_batch: Annotated[int, typer.Option(help=_meaning("max_files_per_batch"))] = 2000,
    max_bytes_per_batch: Annotated[int, typer.Option(help=_meaning("max_bytes_per_batch"))] = 2 << 30,
    visibility_timeout_s: Annotated[int, typer.Option(help=_meaning("visibility_timeout_s"))] = 300,
    wait_s: Annotated[int, typer.Option(help=_meaning("wait_s"))] = 10,
    lease_wait_s: Annotated[float, typer.Option(help=_meaning("lease_wait_s"))] = 90,
    tables_at_once: Annotated[int, typer.Option(help=_meaning("tables_at_once"))] = 4,
    catalog: Annotated[str, typer.Option(help=_meaning("catalog"))] = "",
) -> None:
    """Load files from the queue into tables.

    Takes file names from the queue, reads the files, and appends each record to the table it belongs to, exactly once.
    Ctrl-C ends it after the batch that is under way.
    """
    from pydantic import ValidationError

    given: dict[str, Any] = dict(locals())
    given.pop("ValidationError")
    try:
        settings = IngestSettings(**given)
    except ValidationError as refused:
        raise Misdeclared(problems_of(refused, lambda path: "--" + path.replace("_", "-"))) from None
    from forebay.jobs.ingest import ingest as run
    from forebay.jobs.journal import journal

    with journal(settings) as emit:
        run(settings, emit=emit, stop=threading.Event())


def stop(
    lake: Lake,
    checkpoint: Annotated[str, typer.Option(help=_meaning("checkpoint"))] = "",
    wait_s: Annotated[float, typer.Option(min=0, help="How long to wait for the job to finish its batch.")] = 600,
) -> None:
    """Stop the running ingest job after its batch.

    Works wherever the job runs. Undo: start the job again.
    """
    from forebay.operate.stop import stop as ask

    folder = IngestSettings(lake=lake, queue_url="-", checkpoint=checkpoint).checkpoint_folder
    ended = ask(folder, wait_s=wait_s)
    if ended is None:
        console.print(f"nothing runs on {folder}")
    else:
        console.print(f"{ended.who} has finished its batch and ended; start the job again when you like")
