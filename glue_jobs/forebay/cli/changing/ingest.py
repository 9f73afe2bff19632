"""`forebay ingest` and `forebay stop`: start and stop filling the lake."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Annotated

import typer

from forebay.cli.answer import answers, tell
from forebay.cli.job_options import meaning, options_of
from forebay.cli.looking.history import leave_record
from forebay.cli.options import Lake
from forebay.cli.show import console
from forebay.counted import counted
from forebay.settings import IngestSettings
from forebay.spark.signals import leaving_at_once

FATES = ("written", "quarantined", "parked", "dropped")
SUMS = ("files", "refused_files", "records", *FATES)


@options_of(IngestSettings)
def ingest(settings: IngestSettings) -> None:
    """Load files from the queue into tables.

    Takes file names from the queue, reads the files, and appends each record to its table, exactly once. Ctrl-C stops it after
    the current batch. Events go to standard error, and the sums at the end to standard output.
    """
    with leaving_at_once():
        from forebay.batch.events import BatchCommitted
        from forebay.events import Event, Journal
        from forebay.jobs.ingest import ingest as run
        from forebay.jobs.journal import journal

        sums = Counter[str]()

        def count(event: Event) -> None:
            if isinstance(event, BatchCommitted):
                sums.update({name: getattr(event, name) for name in SUMS})

        with journal(settings) as emit:
            run(settings, emit=Journal(emit, count), stop=threading.Event())
        console.print(_in_words(sums))


def _in_words(sums: Mapping[str, int]) -> str:
    if not sums:
        return "no batch ended"
    files, of_records = counted(sums["files"], "file"), counted(sums["records"], "record")
    refused = f" ({sums['refused_files']:,} refused)" if sums["refused_files"] else ""
    fates = " + ".join(f"{sums[name]:,} {name}" for name in FATES)
    return f"{files}{refused}: {of_records} read = {fates}; `forebay tables list` shows the tables"


@answers
def stop(
    lake: Lake,
    checkpoint: Annotated[str, typer.Option(help=meaning(IngestSettings, "checkpoint"))] = "",
    wait_s: Annotated[float, typer.Option(min=0, help="How long to wait for the job to finish its batch.")] = 600,
) -> None:
    """Stop the running ingest job after its batch.

    Works wherever the job runs. Undo: start the job again.
    """
    from forebay.operate.changing.stop import stop as ask
    from forebay.operate.named_lake import begun_lake, checkpoint_of

    folder = checkpoint_of(begun_lake(lake), checkpoint)
    ended = ask(folder, wait_s=wait_s)
    tell(checkpoint=folder, ended=ended and ended.who)
    if ended is None:
        console.print(f"no job is running on {folder}")
    else:
        console.print(f"{ended.who} has finished its batch and ended; start the job again whenever you like")
        leave_record(lake, f"stop: ended {ended.who}", undo="start the job again")
