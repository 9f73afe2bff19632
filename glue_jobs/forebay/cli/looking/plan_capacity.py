"""`forebay plan-capacity`: the delay and the price of each freshness."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from forebay.cli.options import AsJson, Lake, Of
from forebay.cli.show import columns, console, error_console, print_json
from forebay.counted import counted
from forebay.errors import InvalidConfiguration

CHOICES = ["1 min", "5 min", "30 min"]


def plan_capacity(
    lake: Lake,
    freshness: Annotated[
        list[str], typer.Option(metavar="DURATION", help="A freshness to try, such as 10 min; repeat it for several.")
    ] = CHOICES,
    days: Annotated[int, typer.Option(min=1, max=365, help="How many days of arrivals to replay.")] = 30,
    budget_usd_month: Annotated[
        int, typer.Option(min=0, help="The most that the service may cost per month; 0: no budget.")
    ] = 0,
    workers: Annotated[int, typer.Option(min=2, max=100, help="The number of workers in the deployment.")] = 2,
    worker_type: Annotated[str, typer.Option(help="The deployment's worker_type.")] = "G.1X",
    prices: Annotated[Path | None, typer.Option(help="A file of prices; without it, forebay's own price list.")] = None,
    of: Of = "",
    as_json: AsJson = False,
) -> None:
    """Show the delay and the cost of each freshness.

    Replays the arrivals of the last days, from the ledger, through the rules that start and end ingest runs. Shows how late
    files would have been, and the monthly cost of ingest runs.
    """
    from forebay.aws.prices import PRICES, read_prices
    from forebay.capacity.freshness import in_words, seconds_of
    from forebay.capacity.plan import choices, usd_an_hour
    from forebay.capacity.rules import DAY_S
    from forebay.operate.looking.capacity import arrivals_of, pace_of, rows_of_service
    from forebay.operate.named_lake import view_of
    from forebay.spark.runtime import DPU_OF

    if worker_type not in DPU_OF:
        raise InvalidConfiguration.one("--worker-type", f"must be one of {', '.join(DPU_OF)}; got {worker_type!r}")
    tried = []
    for text in freshness:
        try:
            tried.append(seconds_of(text))
        except ValueError as refused:
            raise InvalidConfiguration.one("--freshness", f"{refused}; got {text!r}") from None
    view, listed = view_of(lake), read_prices(prices or PRICES)
    rows = rows_of_service(view, of)
    arrivals, span_s = arrivals_of(view, days=days, of=rows)
    if not arrivals:
        raise InvalidConfiguration.one(
            f"lake {lake}", f"loaded no file in the last {counted(days, 'day')}", "use a larger --days"
        )
    hour = usd_an_hour(listed, worker_type, workers)
    found = choices(arrivals, pace_of(view, rows), tried, span_s=span_s, usd_hour=hour, budget_usd=budget_usd_month)
    if as_json:
        print_json(map(asdict, found))
        return
    shown = columns("freshness", ">half within", ">99 % within", ">all within", ">in time", ">runs", ">USD a month")
    for one in found:
        late = [f"{seconds:,.0f} s" for seconds in (one.p50_s, one.p99_s, one.most_s)]
        shown.add_row(
            in_words(one.freshness_s), *late, f"{100 * one.in_time:.2f} %", f"{one.runs:,}", f"{one.usd_a_month:,.2f}"
        )
    console.print(shown)
    files = sum(count for _, count in arrivals)
    console.print(f"{counted(files, 'file')} of the last {counted(round(span_s / DAY_S), 'day')}, replayed")
    console.print(f"cost of ingest runs only, by prices of {listed.date} in {listed.region}")
    if any(one.gave_way for one in found):
        error_console.print("the budget delays files: raise it, or choose a longer freshness", style="red")
