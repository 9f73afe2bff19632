"""`forebay demo`: the whole story in one to two minutes, with real S3, SNS and SQS calls to the twin, Spark and Delta."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from forebay.cli.show import console, show_accounts, show_tables, styled
from forebay.counted import agreed, counted
from forebay.events import Event

if TYPE_CHECKING:
    from forebay_local.feed import Dropped
    from forebay_local.twin.twin import Twin

STATE = Path(".forebay/demo")


def demo(
    files: Annotated[int, typer.Option(min=1, help="The number of different files to put.")] = 200,
    games: Annotated[int, typer.Option(min=1, help="The number of games.")] = 8,
    keep: Annotated[bool, typer.Option(help="Leave the twin running afterwards, to look around.")] = True,
) -> None:
    """Run the whole service once, with generated files.

    Starts a twin, puts game telemetry into its bucket, ingests it, compacts a table, and checks that every sum holds.
    """
    from forebay_local.twin import twin as twins

    began = time.monotonic()
    twins.down(STATE)
    twin = twins.up(STATE)
    well = False
    try:
        os.environ.update(twin.env, FOREBAY_LOG="error")  # the bars tell the rest
        well = _story(twin, files, games)
    finally:
        if not (well and keep):
            twins.down(STATE)
    console.print(styled(f"\n{time.monotonic() - began:.0f} s", "bold", " in all"), end="")
    if not well:
        console.print()
        raise typer.Exit(1)
    _what_next(twin) if keep else console.print()


def _story(twin: Twin, files: int, games: int) -> bool:
    from forebay.jobs.ingest import ingest
    from forebay.operate.lake_view import LakeView
    from forebay.operate.looking.accounts import accounts
    from forebay.settings import CompactSettings, IngestSettings
    from forebay.spark.session import session
    from forebay.upkeep.compaction.job import compact

    lake = f"s3://{twin.lake_bucket}"
    with _progress() as progress:
        dropped = _drop(progress, twin, files, games)
        starting = progress.add_task("Spark starts", total=None)
        session("forebay-demo")
        progress.update(starting, total=1, completed=1)
        settings = IngestSettings(lake=lake, queue_url=twin.queue_url, drain=True, wait_s=1, max_files_per_batch=120)
        ingest(settings, emit=_Watch(progress, len(dropped.versions)), stop=threading.Event())
    view = LakeView(lake)
    biggest = max(filter(None, map(view.facts, view.tables())), key=lambda facts: facts.files)
    with console.status(f"compacting {biggest.name} ..."):
        done = compact(CompactSettings(lake=lake, tables=biggest.name, now=True), emit=_say_nothing)
    fewer = view.facts(biggest.name)
    assert fewer is not None
    console.print(
        f"compacted {biggest.name}: {counted(biggest.files, 'file')} became {fewer.files}, and no row changed\n"
    )
    if done.left:
        console.print(styled("not compacted:", "red", f" {done.left[0].reason}, {done.left[0].detail}"))
    show_tables(facts for name in view.tables() if (facts := view.facts(name, newest_by="event_time")))
    console.print()
    return not show_accounts(accounts(view), files_put=len(dropped.versions)) and _all_records(
        dropped, accounts(view).records
    )


def _drop(progress: Progress, twin: Twin, files: int, games: int) -> Dropped:
    from forebay_local.feed import SPAN, Recipe, drop, plan

    recipe = Recipe(start=datetime.now(UTC) - SPAN, files=files, games=games, prefix=twin.prefix)
    task = progress.add_task("files dropped into S3", total=None)
    dropped = drop(twin.client("s3"), twin.landing_bucket, plan(recipe), on_put=lambda _: progress.advance(task))
    progress.update(task, total=dropped.files)
    return dropped


class _Watch:
    """An event sink that moves the bars."""

    def __init__(self, progress: Progress, files: int) -> None:
        self._progress = progress
        self._files = progress.add_task("files in the ledger", total=files)
        self._rows = progress.add_task("rows in tables", total=None)

    def __call__(self, event: Event) -> None:
        from forebay.batch.events import BatchCommitted, TableFailed

        if isinstance(event, BatchCommitted):
            self._progress.advance(self._files, event.files)
            self._progress.advance(self._rows, event.written)
        elif isinstance(event, TableFailed):
            console.print(styled(f"{event.table} failed:", "red", f" {event.error}"))


def _say_nothing(event: Event) -> None:
    """The screen shows the progress already."""


def _all_records(dropped: Dropped, read: int) -> bool:
    if dropped.tally.records == read:
        return True
    console.print(
        styled(
            "does not add up:",
            "red",
            f" {counted(dropped.tally.records, 'record', 'was')} dropped, and {read:,} {agreed(read, 'was')} read",
        )
    )
    return False


@contextmanager
def _progress() -> Iterator[Progress]:
    columns = (TextColumn("{task.description:<22}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        yield progress
    console.print()


def _what_next(twin: Twin) -> None:
    console.print(f"; the twin keeps running at {twin.endpoint}. Look around:\n")
    console.print(f'  export FOREBAY_LOCAL={STATE} && eval "$(.venv/bin/forebay local env)"')
    console.print("  .venv/bin/forebay local feed --files 50 --chaos    # more files, and faults")
    console.print("  .venv/bin/forebay ingest --drain --wait-s 1        # take them in")
    console.print("  .venv/bin/forebay audit                            # does it all add up?")
    console.print("  .venv/bin/forebay local down                       # stop")
