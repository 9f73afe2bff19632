"""`forebay status`: how is it going?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from time import sleep
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.cli.options import AsJson, Checkpoint, LakeOfStack, QueueUrl, Stack
from forebay.cli.show import at, columns, console, error_console, print_json
from forebay.cli.usage import hint_of
from forebay.counted import counted
from forebay.errors import InvalidConfiguration
from forebay.operate.page.content import age, span

if TYPE_CHECKING:
    from forebay.operate.looking.status import Status
    from forebay.operate.stack.deployment import Deployment


def status(
    lake: LakeOfStack = "",
    queue_url: QueueUrl = "",
    checkpoint: Checkpoint = "",
    stack: Stack = "",
    tables: Annotated[bool, typer.Option("--tables", help="Also show how old each table's newest rows are.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh, with rates, until Ctrl-C.")] = False,
    every_s: Annotated[float, typer.Option(min=1, help="With --watch: seconds between two refreshes.")] = 5,
    as_json: AsJson = False,
) -> None:
    """Show the state of the queue, the job and the tables.

    Shows the queue and its oldest message, the running job and its last batch, today's files, held records, files that S3 had
    not announced, and the age of each table's newest rows. --stack adds failed runs, active alarms, and the cost of this month
    so far. Exit status 1 if something needs attention.
    """
    from forebay.operate.lake_view import LakeView
    from forebay.operate.looking.status import status_of
    from forebay.operate.named_lake import begun_view

    on, before = deployment(stack), None
    lake = lake_of(lake, on)
    is_deployed = on is not None and lake == on.outputs["LakeUri"]  # before its first run, too
    view = LakeView(lake) if is_deployed else begun_view(lake)
    while True:
        now = status_of(view, queue_url=queue_url, checkpoint=checkpoint, on=on)
        if as_json:
            lost = {name: its.rows for name, its in now.lost_tables.items()}
            more = {"lag_s": now.lag_s, "now_paused": sorted(now.now_paused), "problems": now.problems}
            print_json([{**asdict(now), "lost_tables": lost, **more}])
        else:
            if watch and console.is_terminal:
                console.clear()
            for line in _lines(now, before):
                console.print(line)
            if tables:
                _show_tables(now)
            for problem in now.problems:
                error_console.print(f"look at: {problem}", style="red")
        if not watch:
            raise typer.Exit(1 if now.problems else 0)
        before = now
        sleep(every_s)


def _lines(now: Status, before: Status | None) -> Iterator[str]:
    if now.queue is None:
        yield "queue       unknown: name it with --queue-url or FOREBAY_QUEUE_URL"
    else:
        oldest = f", the oldest for {span(now.queue.oldest_s)}" if now.queue.oldest_s is not None else ""
        yield f"queue       {now.queue.waiting:,} waiting{oldest}; {now.queue.in_flight:,} in flight"
    if now.dead is not None:
        yield f"dead        {counted(now.dead.waiting + now.dead.in_flight, 'letter')}"
    then = "; its next start loads what waits" if now.queue is not None and now.queue.waiting else ""
    yield f"job         {now.runs or f'not running{then}'}"
    if now.budget_warned_at is not None:
        yield f"budget      delayed runs, and files were late: warned {age(now.at, now.budget_warned_at)}"
    if now.batch is not None:
        done = f"{counted(now.batch.files, 'file')}, {counted(now.batch.records, 'record')}"
        yield f"last batch  {now.batch.batch} of {now.batch.service}, {age(now.at, now.batch.at)}: {done}"
    elif not now.files:
        yield "last batch  no batch has ended yet"
    for begun in now.begun:
        then = "the job is working on it" if now.runs else "the next start of the job finishes it"
        yield f"open batch  {begun.batch} of {begun.service}, {age(now.at, begun.at)}: {counted(begun.files, 'file')}; {then}"
    today = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(now.today.items())) or "none"
    yield f"today       {today}; {counted(now.records_today, 'record')}"
    yield f"ledger      {counted(now.files, 'file')}{_rate(now, before)}"
    whole = f" and {counted(now.whole_files, 'whole file')}" if now.whole_files else ""
    where = [
        f" (`forebay {name} list`)" if count else ""
        for name, count in (("quarantine", now.quarantined + now.whole_files), ("parked", now.parked))
    ]
    kept = f"{counted(now.quarantined, 'record')}{whole} quarantined{where[0]}, {now.parked:,} parked{where[1]}"
    yield f"held        {kept}, {counted(now.refused, 'message')} not understood"
    if now.now_paused or now.paused:
        names = ", ".join("all tables" if name == "_all" else name for name in sorted(now.now_paused)) or "none now"
        yield f"paused      {names}; {counted(sum(now.paused.values()), 'row', 'waits')} for `forebay resume`"
    if now.replays:
        yield f"replays     {counted(now.replays, 'file')} to be read again"
    if now.partly:
        again = "a table has earlier rows; `forebay replay --resume` announces them again"
        yield f"replays     {counted(now.partly, 'file')} in part: {again}"
    if now.forgets:
        yield f"forgets     {counted(now.forgets, 'file')} to be forgotten: their rows are still in the tables"
    if now.reconciled is not None:
        looked = f"of {counted(now.reconciled.looked_at, 'file')}, {age(now.at, now.reconciled.at)}"
        done = "; `forebay find-missed` announced them" if now.reconciled.missed else ""
        yield f"missed      {now.reconciled.missed:,} {looked}{done}"
    if now.cost is not None:
        parts = ", ".join(f"{usd:,.2f} for {part}" for part, usd in now.cost.usd.items())
        yield f"cost        {now.cost.total:,.2f} USD this month so far: {parts}"
    ordered = sorted(now.newest_rows.items(), key=lambda pair: pair[1], reverse=True)
    ages = ""
    if ordered:
        (newest, at), (oldest_name, oldest_at) = ordered[0], ordered[-1]
        ages = f"; newest rows {age(now.at, at)} ({newest}), oldest {age(now.at, oldest_at)} ({oldest_name})"
    if now.tables:
        yield f"tables      {now.tables:,}{ages}"


def _show_tables(now: Status) -> None:
    shown = columns("table", ">newest rows", "=at", "state")
    for table, lag in now.lag_s.items():
        state = "paused" if table in now.now_paused else "failed" if table in now.failed else ""
        shown.add_row(table, f"{span(lag)} ago", at(now.newest_rows[table]), state)
    console.print(shown)


def lake_of(lake: str, on: Deployment | None) -> str:
    """The lake that is named, or that of the stack."""
    if not lake and on is None:
        raise InvalidConfiguration.one("status", f"--lake is missing ({hint_of('FOREBAY_LAKE')}; or --stack)")
    return lake or on.outputs["LakeUri"] if on else lake


def deployment(stack: str) -> Deployment | None:
    """None without a name."""
    if not stack:
        return None
    from forebay.aws.client import client
    from forebay.operate.stack.deployed import deployed

    return deployed(stack, client)


def _rate(now: Status, before: Status | None) -> str:
    seconds = (now.at - before.at).total_seconds() if before else 0
    return f", {(now.files - before.files) / seconds:,.1f} a second" if before and seconds else ""
