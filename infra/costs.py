"""What the service uses in a month, at three sizes, and what that costs at your prices.

`python -m infra.costs [--prices FILE]` prints a table. Unit prices differ by region and change, so they are an input: a TOML
file with a price for each part by its name here. What is assumed of a size is in `SIZES`, and printed; the rest is counted from
how the service works. Not in it: queries, transfer out of the region, and the account's own log of API calls.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infra import node  # noqa: F401  isort: skip
from forebay.errors import ForebayError, InvalidConfiguration, Problem
from forebay.spark.runtime import DPU_OF
from infra.metrics import published
from infra.settings import Settings

__all__ = ["SIZES", "Size", "main", "month", "table"]

DAYS, HOURS = 365 / 12, 730
SETTINGS = Settings()
MESSAGES_A_RECEIVE = 7
"""On average, of ten at most; a delete takes as many."""
MAINTENANCE_MINUTES, RECONCILE_MINUTES = 5, 2
"""A day; reconcile has two workers, which is Glue's least."""
RECONCILED_DAYS, OBJECTS_A_LIST = 16, 1000
PUTS_A_COMMIT = 2
"""The commit itself, and its part of checkpoints."""
LAKE_SHARE = 0.25
"""Parquet's size by that of JSON, uncompressed."""


@dataclass(frozen=True)
class Size:
    """What is assumed. `runs_a_day` of 0: the job runs on."""

    name: str
    files_a_day: int
    kilobytes_a_file: float
    tables: int
    workers: int
    runs_a_day: int
    minutes_a_run: float
    minutes_of_compaction: float

    @property
    def said(self) -> str:
        how = f"{self.runs_a_day} drains a day of {self.minutes_a_run:g} min" if self.runs_a_day else "continuous"
        return (
            f"{self.files_a_day:,} files a day of {self.kilobytes_a_file:g} KB, {self.tables} tables, {how}, "
            f"{self.workers} workers on average; {self.minutes_of_compaction:g} min of compaction a day"
        )


SIZES = (
    Size("small", 1_000, 70, 8, 2, 48, 2, 2),
    Size("medium", 50_000, 70, 30, 2, 144, 4, 15),
    Size("large", 1_000_000, 70, 100, 4, 0, 0, 90),
)


def month(size: Size, settings: Settings = SETTINGS) -> dict[str, float]:
    """How much of each part, by the name that a price has."""
    files = size.files_a_day * DAYS
    hours = size.runs_a_day * DAYS * size.minutes_a_run / 60 if size.runs_a_day else HOURS
    batches = min(files, hours * 3600 / settings.trigger_s)
    upkeep = DAYS / 60 * (settings.workers * (size.minutes_of_compaction + MAINTENANCE_MINUTES) + 2 * RECONCILE_MINUTES)
    listed_days = RECONCILED_DAYS if settings.reconcile_below else settings.keep_landed_days or 365
    lists = DAYS * size.files_a_day * listed_days / OBJECTS_A_LIST  # a LIST costs what a PUT does
    landed_gb = size.files_a_day * size.kilobytes_a_file / 1e6
    looks = HOURS * 60 / settings.start_every_minutes + HOURS * 60 / 5
    of_service = sum(dimensions == ("service",) for dimensions in published().values())
    of_table = sum("table" in dimensions for dimensions in published().values())
    return {
        "glue_dpu_hour": (hours * size.workers + upkeep) * DPU_OF[settings.worker_type],
        "sns_publish_million": files / 1e6,
        "sqs_request_million": (2 * files / MESSAGES_A_RECEIVE + hours * 180 + 3 * looks) / 1e6,
        "s3_get_thousand": files / 1e3,
        "s3_put_thousand": (batches * min(size.tables, size.files_a_day) * (1 + PUTS_A_COMMIT) + lists) / 1e3,
        "s3_gb_month_landed": landed_gb * (settings.keep_landed_days or 365),
        "s3_gb_month_lake_first_year": landed_gb * LAKE_SHARE * 365 / 2,
        "cloudwatch_metric": of_service + of_table * size.tables,
        "lambda_call_million": looks / 1e6,
        "kms_key": 2,
    }


def table(sizes: Sequence[Size] = SIZES, prices: Mapping[str, float] | None = None) -> str:
    """In Markdown. With prices, each cell is money."""
    used = {size.name: month(size) for size in sizes}
    lines = [f"| a month | {' | '.join(used)} |", f"| --- |{' ---: |' * len(used)}"]
    for part in month(sizes[0]):
        cells = [used[name][part] * prices[part] if prices else used[name][part] for name in used]
        lines.append(f"| `{part}` | {' | '.join(_short(cell) for cell in cells)} |")
    if prices:
        sums = [sum(amount * prices[part] for part, amount in used[name].items()) for name in used]
        lines.append(f"| in all | {' | '.join(_short(cell) for cell in sums)} |")
    return "\n".join(lines)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.costs", description="what a month takes, and costs")
    parser.add_argument("--prices", type=Path, help="a TOML file: the price of each part, by the table's names")
    try:
        prices = _read(given) if (given := parser.parse_args(argv).prices) else None
    except ForebayError as refused:
        print(f"forebay: {refused}", file=sys.stderr)
        return 2
    for size in SIZES:
        print(f"{size.name}: {size.said}")
    print(f"\n{table(prices=prices)}")
    return 0


def _read(file: Path) -> dict[str, float]:
    try:
        given = tomllib.loads(file.read_text())
    except (OSError, tomllib.TOMLDecodeError) as why:
        raise InvalidConfiguration.one(str(file), f"cannot be read: {why}") from why
    parts = month(SIZES[0]).keys()
    problems = [Problem(f"{file}: {name}", "has no price") for name in parts - given.keys()]
    problems += [Problem(f"{file}: {name}", "is unknown") for name in given.keys() - parts]
    problems += [
        Problem(f"{file}: {name}", f"must be a number; got {price!r}")
        for name, price in given.items()
        if not isinstance(price, int | float)
    ]
    if problems:
        raise InvalidConfiguration(sorted(problems, key=str))
    return given


def _short(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 100 else f"{amount:.3g}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
