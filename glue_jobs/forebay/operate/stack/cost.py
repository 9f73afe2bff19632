"""The cost of a month so far, by list prices with a date.

In: the runs of the deployed jobs, how many files were loaded, and what the tables hold. Out: `Cost`. It includes only what
forebay can count, and says what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from forebay.aws.prices import Prices
from forebay.counted import counted
from forebay.operate.page.content import Cost, Run

MESSAGES_A_RECEIVE = 7
"""On average, of ten at most; a delete takes as many."""
MONTH = timedelta(days=365 / 12)
NOT_IN_IT = "Not included: writes to S3, landed files, functions, metrics, alarms, logs and keys"
ON_EMR = " A run on EMR Serverless is included when it has ended."


@dataclass(frozen=True)
class Hours:
    """DPU-hours. Those of flexible execution cost less."""

    standard: float
    flex: float


def month_of(now: datetime) -> datetime:
    """When the bill of this month begins."""
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def cost_of(
    dpu_hours: Hours, files: int, table_bytes: int, prices: Prices, *, now: datetime, is_on_emr: bool = False
) -> Cost:
    """The costs of this month: the time of the jobs, and the number of loaded files."""
    usd, share = prices.usd, (now - month_of(now)) / MONTH
    jobs = dpu_hours.standard * prices.dpu_hour(is_on_emr=is_on_emr) + dpu_hours.flex * usd["glue_flex_dpu_hour"]
    a_file = usd["sns_publish_million"] / 1e6 + 2 / MESSAGES_A_RECEIVE * usd["sqs_request_million"] / 1e6
    a_file += usd["s3_get_thousand"] / 1e3
    return Cost(
        {
            f"{dpu_hours.standard + dpu_hours.flex:,.1f} DPU-hours of jobs": jobs,
            f"messages and reads of {counted(files, 'file')}": files * a_file,
            "storage of the tables": table_bytes / 1e9 * usd["s3_gb_month"] * share,
        },
        f"By list prices of {prices.date} in {prices.region}. {NOT_IN_IT}.{ON_EMR if is_on_emr else ''}",
    )


def hours_of(runs: Iterable[Run], since: datetime) -> Hours:
    """The hours of runs since then; of a run that began earlier, only the later part."""
    standard = flex = 0.0
    for run in runs:
        hours = _part_since(run, since) * run.dpu_seconds / 3600
        standard, flex = (standard, flex + hours) if run.is_flex else (standard + hours, flex)
    return Hours(standard, flex)


def _part_since(run: Run, since: datetime) -> float:
    if run.began_at >= since or not run.seconds:
        return 1.0
    return max(0.0, 1 - (since - run.began_at).total_seconds() / run.seconds)
