"""The time and money that recorded arrivals take with one freshness and another: delays, hours of runs, and dollars. Pure.

In: arrivals, the batches that were measured, the workers and the prices. Out: a `Choice` for each freshness. Only ingest
runs are in it: `python -m infra.costs` counts the rest of a bill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forebay.aws.prices import Prices
from forebay.capacity.pace import Pace
from forebay.capacity.rules import HOURS_A_MONTH, Rules, share_of_budget
from forebay.capacity.runs import Truth
from forebay.capacity.simulation import Arrivals, simulate
from forebay.spark.runtime import DPU_OF


@dataclass(frozen=True)
class Choice:
    """`in_time`: the share of files that were rows within the freshness. `gave_way`: the budget delayed files."""

    freshness_s: int
    p50_s: float
    p99_s: float
    most_s: float
    in_time: float
    runs: int
    hours: float
    usd_a_month: float
    gave_way: bool


def usd_an_hour(prices: Prices, worker_type: str, workers: int) -> float:
    """The price of an hour of an ingest run, with all its workers."""
    return workers * DPU_OF[worker_type] * prices.usd["glue_dpu_hour"]


def choices(
    arrivals: Arrivals,
    measured: Pace,
    freshness: Sequence[int],
    *,
    span_s: float,
    usd_hour: float,
    budget_usd: float = 0,
) -> list[Choice]:
    """`span_s`: the time from which the arrivals are. Hours and dollars are scaled to a month."""
    found = []
    for freshness_s in freshness:
        rules = Rules(freshness_s, share_of_budget(budget_usd, usd_hour))
        done = simulate(arrivals, rules, Truth(measured.work_s), until=span_s)
        hours = done.billed_s / 3600 * HOURS_A_MONTH / (span_s / 3600)
        p50, p99, most = (done.percentile(share) for share in (0.5, 0.99, 1))
        in_time = done.within(freshness_s)
        found.append(Choice(freshness_s, p50, p99, most, in_time, done.runs, hours, hours * usd_hour, done.gave_way))
    return found
