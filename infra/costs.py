"""The usage of the service in a month at four sizes, its cost, and the cost of a million files.

`python -m infra.costs [--prices FILE]` prints two tables. Prices are those of `forebay.aws.prices`, which have a date and a
source, or of a file of your own. The assumptions of a size are in `SIZES`, and are printed; the rest follows from how the
service works. Not included: queries, transfer out of the region, discounts, free tiers save that of dashboards, and the log of
API calls.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from forebay.counted import counted

from infra import node  # noqa: F401  isort: skip
from forebay.aws.prices import PRICES, Prices, read_prices
from forebay.batch.reasons import REASONS
from forebay.capacity.rules import Rules
from forebay.errors import ForebayError
from forebay.operate.stack.cost import MESSAGES_A_RECEIVE
from forebay.spark.runtime import DPU_OF
from infra.buckets import days_of_access_logs
from infra.engines import OF_FLEX
from infra.landing_bucket import NOT_WORTH_MOVING_BYTES, OLD_VERSIONS_DAYS
from infra.metrics import published
from infra.network import CALLED, CALLED_WITH_EMR, Network
from infra.schedules import WAITING_EVERY_MINUTES
from infra.settings import Settings
from lambdas.engine.submission import GB_OF_A_VCPU, VCPUS_OF_A_WORKER
from lambdas.publish_freshness.events import FreshnessMeasured, KeysChecked, SchedulesChecked

DAYS, HOURS = 365 / 12, 730
UPKEEP_RUNS_A_DAY, LEAST_WORKERS = 2, 2
"""Maintenance and reconcile; Glue gives a job two workers at least."""
MINUTES_OF_A_RUN = 2
RECONCILED_DAYS, OBJECTS_A_LIST = 16, 1000
PUTS_A_COMMIT = 2
"""The commit itself, and its part of checkpoints."""
LAKE_SHARE = 0.25
"""Parquet's size by that of JSON, uncompressed."""
MEASURED_ALWAYS = tuple(one.__name__ for one in (FreshnessMeasured, KeysChecked, SchedulesChecked))
ALARM_METRICS = 33
"""The metrics of all alarms, with the default settings; one alarm may use several metrics."""
DASHBOARD_METRICS, FREE_DASHBOARD_METRICS = 50, 50
"""The metrics of our dashboard, and of each of the three dashboards that are free in an account."""
PAGE_READS, TREND_READS = 11 + len(REASONS), 6
"""Metrics that the status page asks for each time, and the hourly averages."""
LOOK_S, LOOK_GB = 1, 0.25
LOG_BYTES_A_FILE, LOG_BYTES_A_LOOK, LOG_MB_A_RUN = 300, 1_000, 2
SPARK_LOG_KB_A_BATCH = {"INFO": 20, "WARN": 0, "ERROR": 0}
"""Log of the Spark driver for a small batch, measured with two tables. Executors add theirs."""
ACCESS_LOG_BYTES, REQUESTS_A_FILE = 600, 3
"""A line for each request: S3 bills its storage, and not its delivery."""
KMS_REQUESTS_A_MINUTE = 1
"""The requests of a running job. Bucket keys and SQS's reuse of data keys make them independent of the number of files."""


@dataclass(frozen=True)
class Size:
    """The assumptions. `hours_a_day` are those of the ingest job; 24: it is continuous."""

    name: str
    files_a_day: int
    kilobytes_a_file: float
    tables: int
    workers: int
    hours_a_day: float
    runs_a_day: int
    minutes_of_compaction: float
    settings: Settings = field(default_factory=Settings)

    @property
    def summary(self) -> str:
        return (
            f"{counted(self.files_a_day, 'file')} a day of {self.kilobytes_a_file:g} KB, "
            f"{counted(self.tables, 'table')}; {self._how}. "
            f"Landed files are kept for {counted(self.settings.keep_landed_days, 'day')}"
        )

    @property
    def _how(self) -> str:
        if not self.hours_a_day:
            return "nothing lands"
        on = f"{self.workers} workers of {self.settings.worker_type} on average"
        minutes = 60 * self.hours_a_day / max(self.runs_a_day, 1)
        how = "continuous" if self.hours_a_day == 24 else f"{self.runs_a_day} drains a day of {minutes:g} min"
        return f"{how}, {on}; {self.minutes_of_compaction:g} min of compaction a day"


_DRAINS = Settings()
_BY_DAY = Settings(workers=4, keep_landed_days=90, reconcile_below="in/%Y/%m/%d/")
SIZES = (
    Size("idle", 0, 70, 0, 0, 0, 0, 0, _DRAINS),
    Size("small", 1_000, 70, 8, 2, 1.6, 48, 4, _DRAINS),
    Size("medium", 50_000, 70, 30, 2, 9.6, 144, 30, _DRAINS),
    Size("large", 1_000_000, 70, 100, 4, 24, 0, 90, _BY_DAY),
)


def month(size: Size) -> dict[str, float]:
    """The amount of each part, by the name of its price."""
    settings = size.settings
    files, hours = size.files_a_day * DAYS, size.hours_a_day * DAYS
    batches = min(files, hours * 3600 / Rules(settings.freshness_s).batch_every_s)
    tables = min(size.tables, size.files_a_day)
    listed_days = RECONCILED_DAYS if settings.reconcile_below else _days_listed(settings)
    lists = DAYS * size.files_a_day * listed_days / OBJECTS_A_LIST  # a LIST costs what a PUT does
    looks = _looks(settings)
    kept_gb, infrequent_gb = _landed(size)
    access_gb = files * REQUESTS_A_FILE * ACCESS_LOG_BYTES / 1e9 * days_of_access_logs(settings) / DAYS
    spark_gb = batches * SPARK_LOG_KB_A_BATCH[settings.log_level] / 1e6
    lake_gb = size.files_a_day * size.kilobytes_a_file / 1e6 * LAKE_SHARE * 365 / 2
    runs = (size.runs_a_day or bool(size.hours_a_day)) + UPKEEP_RUNS_A_DAY
    moved = files if infrequent_gb else 0
    return {
        **_workers(size),
        "vpc_endpoint_hour": HOURS * _endpoints(settings),
        "sns_publish_million": files / 1e6,
        "sqs_request_million": (2 * files / MESSAGES_A_RECEIVE + hours * 180 + 3 * looks) / 1e6,
        "s3_get_thousand": (files + looks) / 1e3,
        "s3_put_thousand": (batches * tables * (1 + PUTS_A_COMMIT) + lists) / 1e3,
        "s3_transition_thousand": moved / 1e3,
        "s3_gb_month": kept_gb + lake_gb + access_gb,
        "s3_infrequent_gb_month": infrequent_gb,
        "cloudwatch_metric": _metrics(size),
        "cloudwatch_alarm_metric": ALARM_METRICS,
        "cloudwatch_dashboard": int(DASHBOARD_METRICS > FREE_DASHBOARD_METRICS),
        "cloudwatch_read_thousand": HOURS * (60 / settings.status_page_every_minutes * PAGE_READS + TREND_READS) / 1e3,
        "log_gb": (files * LOG_BYTES_A_FILE + looks * LOG_BYTES_A_LOOK) / 1e9
        + runs * DAYS * LOG_MB_A_RUN / 1e3
        + spark_gb,
        "lambda_call_million": looks / 1e6,
        "lambda_gb_second": looks * LOOK_S * LOOK_GB,
        "schedule_million": looks / 1e6,
        "kms_key": 1,
        "kms_request_ten_thousand": (hours * 60 * KMS_REQUESTS_A_MINUTE + looks) / 1e4,
    }


def _workers(size: Size) -> dict[str, float]:
    """The workers of the engine that runs them. EMR Serverless bills processors and memory, and has no class for work without
    urgency."""
    settings = size.settings
    upkeep, ingest = DAYS * _upkeep_worker_hours(size), DAYS * size.hours_a_day * size.workers
    if settings.engine == "emr-serverless":
        vcpu_hours = (ingest + upkeep) * VCPUS_OF_A_WORKER[settings.worker_type]
        return {
            "glue_dpu_hour": 0,
            "glue_flex_dpu_hour": 0,
            "emr_vcpu_hour": vcpu_hours,
            "emr_gb_hour": vcpu_hours * GB_OF_A_VCPU,
        }
    flex = settings.upkeep_worker_type in OF_FLEX
    dpu_hours = upkeep * DPU_OF[settings.upkeep_worker_type]
    return {
        "glue_dpu_hour": ingest * DPU_OF[settings.worker_type] + (0 if flex else dpu_hours),
        "glue_flex_dpu_hour": dpu_hours if flex else 0,
        "emr_vcpu_hour": 0,
        "emr_gb_hour": 0,
    }


def _endpoints(settings: Settings) -> int:
    """Each has a price in each zone, whatever goes through it. That of S3 has none."""
    network = Network.of(settings)
    if network is None or not settings.vpc_endpoints:
        return 0
    called = (*CALLED, *(CALLED_WITH_EMR if settings.engine == "emr-serverless" else ()))
    return len(called) * len(network.one_subnet_of_each_zone)


def _upkeep_worker_hours(size: Size) -> float:
    """A day's."""
    compaction = size.settings.workers * size.minutes_of_compaction
    return (UPKEEP_RUNS_A_DAY * LEAST_WORKERS * MINUTES_OF_A_RUN + compaction) / 60


def _looks(settings: Settings) -> float:
    """Calls of the functions that run by the clock."""
    start = Rules(settings.freshness_s).look_every_s / 60
    other = (settings.plan_compaction_every_minutes, settings.status_page_every_minutes)
    return sum(HOURS * 60 / minutes for minutes in (start, 5, 60, WAITING_EVERY_MINUTES, *other))


def _days_stored(settings: Settings) -> int:
    """A deleted file is an old version for a while."""
    return settings.keep_landed_days + OLD_VERSIONS_DAYS if settings.keep_landed_days else 365


def _days_listed(settings: Settings) -> int:
    """Over each old version lies a mark, which is listed like an object."""
    return _days_stored(settings) + (OLD_VERSIONS_DAYS if settings.keep_landed_days else 0)


def _landed(size: Size) -> tuple[float, float]:
    """GB of landed files at any time, in S3 Standard and in Infrequent Access. Small files stay where they are."""
    settings, a_day = size.settings, size.files_a_day * size.kilobytes_a_file / 1e6
    days = _days_stored(settings)
    if not settings.landed_files_move or size.kilobytes_a_file * 1000 <= NOT_WORTH_MOVING_BYTES:
        return a_day * days, 0
    early = min(days, settings.landing_ia_days)
    return a_day * early, a_day * (days - early)


def _metrics(size: Size) -> float:
    """Those of the service for all hours, and of the measured tables; idle, those that are measured all the time, and a
    little of upkeep. CloudWatch bills a metric for the hours in which it has values."""
    dimensions = list(published().values())
    of_service, of_jobs = _next_ten(dimensions.count(("service",))), dimensions.count(("service", "job"))
    if not size.files_a_day:
        always = sum(name.startswith(MEASURED_ALWAYS) for name in published())
        return always + (of_service + UPKEEP_RUNS_A_DAY * of_jobs) / 24
    of_table = _next_ten(sum("table" in of for of in dimensions))
    measured = size.settings.measured_tables
    tables = size.tables if measured == "*" else len([name for name in measured.split(",") if name])
    return of_service + of_jobs * (1 + UPKEEP_RUNS_A_DAY) + of_table * tables


def _next_ten(count: int) -> int:
    """So that the bill does not change with each new metric."""
    return 10 * math.ceil(count / 10)


# --- money ---


def money(size: Size, prices: Prices) -> dict[str, float]:
    return {part: amount * prices.usd[part] for part, amount in month(size).items()}


def per_million(size: Size, prices: Prices) -> float:
    """All of a month, by the million files that landed in it."""
    return sum(money(size, prices).values()) / (size.files_a_day * DAYS / 1e6)


def table(rows: Mapping[str, Mapping[str, float]], last: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """In Markdown: a column for each size."""
    parts = next(iter(rows.values()))
    lines = [f"| a month | {' | '.join(rows)} |", f"| --- |{' ---: |' * len(rows)}"]
    lines += [f"| `{part}` | {' | '.join(_short(rows[name][part]) for name in rows)} |" for part in parts]
    for name, cells in (last or {}).items():
        lines.append(f"| {name} | {' | '.join(cells[size] for size in rows)} |")
    return "\n".join(lines)


def amounts() -> str:
    return table({size.name: month(size) for size in SIZES})


def bill(prices: Prices) -> str:
    costs = {size.name: money(size, prices) for size in SIZES}
    sums = {name: f"{sum(parts.values()):,.2f}" for name, parts in costs.items()}
    millions = {size.name: f"{per_million(size, prices):,.2f}" if size.files_a_day else "-" for size in SIZES}
    return table(costs, {"**USD in all**": sums, "**USD for a million files**": millions})


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.costs", description="what a month takes, and costs")
    parser.add_argument("--prices", type=Path, default=PRICES, help="a TOML file as forebay/aws/prices.toml is")
    try:
        prices = read_prices(parser.parse_args(argv).prices, month(SIZES[0]).keys())
    except ForebayError as refused:
        print(f"forebay: {refused}", file=sys.stderr)
        return 2
    for size in SIZES:
        print(f"{size.name}: {size.summary}")
    print(f"\n{amounts()}\n\nUSD, by prices of {prices.date} in {prices.region}, from {prices.source}:\n")
    print(bill(prices))
    return 0


def _short(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 100 or not amount else f"{amount:.3g}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
