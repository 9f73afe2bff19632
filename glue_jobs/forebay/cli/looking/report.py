"""`forebay report`: how it is going, as a page."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from forebay.cli.looking.status import deployment
from forebay.cli.options import AsJson, Checkpoint, Lake, QueueUrl, Stack
from forebay.cli.show import console, print_json
from forebay.errors import InvalidConfiguration


def report(
    lake: Lake,
    queue_url: QueueUrl = "",
    checkpoint: Checkpoint = "",
    stack: Stack = "",
    hours: Annotated[int, typer.Option(min=2, max=24 * 90, help="How many hours to look back.")] = 48,
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("forebay-report.html"),
    as_json: AsJson = False,
) -> None:
    """Write the state of the service into one HTML file.

    The page shows problems, the files' journey in numbers, records, files and latency by hour, the tables, and why records are
    in the quarantine. --stack adds runs, alarms and cost. The file needs no network and no script, so it can be mailed. On AWS
    a function writes the same page every 20 minutes. --json prints the page's contents, and writes no file.
    """
    from forebay.operate.looking.report import report_of
    from forebay.operate.looking.status import health_objects, status_of
    from forebay.operate.named_lake import begun_view
    from forebay.operate.page.rendering import render

    view = begun_view(lake)
    health = health_objects(view.lake)
    now = status_of(view, queue_url=queue_url, checkpoint=checkpoint, on=deployment(stack), health=health)
    page = report_of(view, now, health, hours=hours)
    if as_json:
        print_json([asdict(page)])
        return
    try:
        out.write_text(render(page), encoding="utf-8")
    except OSError as refused:
        raise InvalidConfiguration.one(f"--out {out}", f"cannot be written: {refused.strerror}") from None
    console.print(f"wrote {out}")
