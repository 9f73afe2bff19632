"""The price of loading the same files elsewhere: only the bill for loading, by published prices, each with its date.

Storage, queries, and people are not in it, on either side. A price that nobody was found to have published is not guessed.
"""

from __future__ import annotations

from dataclasses import dataclass

from forebay.aws.prices import Prices
from infra.costs import DAYS, SIZES, Size, money, month

KILOBYTES_IN_A_GB = 1e6
BILL = "[every line of the bill](../../infra/README.md#what-it-costs-to-leave-on)"
"""A link from the page that has the table, in docs/concepts."""


@dataclass(frozen=True)
class Alternative:
    """Billed by the GB that is loaded, uncompressed."""

    name: str
    usd_a_gb: tuple[float, float]
    billed: str
    source: str
    dated: str


CREDITS_A_GB, CREDIT_USD = 0.0037, (2.0, 4.0)
ALTERNATIVES = (
    Alternative(
        "Snowpipe",
        (CREDITS_A_GB * CREDIT_USD[0], CREDITS_A_GB * CREDIT_USD[1]),
        "0.0037 credits a GB of text, uncompressed; a credit is 2 to 4 USD by edition",
        "[how it bills](https://docs.snowflake.com/en/user-guide/data-load-snowpipe-billing), "
        "[0.0037](https://seemoredata.io/blog/snowflakes-new-snowpipe-pricing), "
        "[credits](https://www.finout.io/blog/the-complete-guide-to-snowflake-pricing-2025)",
        "no date; 2026",
    ),
    Alternative(
        "Amazon Data Firehose",
        (0.029, 5 * 0.029),
        "0.029 USD a GB, each record rounded up to 5 KB: five times as much for records of 1 KB. Producers send records, not "
        "files; Parquet, partitions and Iceberg cost more",
        "[how it bills](https://aws.amazon.com/firehose/pricing/); 0.029 as several public repositories quote that page: check",
        "2026",
    ),
)
IN_WORDS = (
    "| Databricks Auto Loader | your workers | your workers | your workers | DBUs of a job, 0.15 USD each, and its machines "
    "beside that; how many DBUs an hour a machine takes is on Databricks' page: put in yours | "
    "[DBU](https://databrickspricing.pages.dev/dbu-pricing-explained) | April 2026 |"
)


def markdown(prices: Prices) -> str:
    sizes = [size for size in SIZES if size.files_a_day]
    lines = [f"| USD a month | {' | '.join(size.name for size in sizes)} | what is billed | source | dated |"]
    lines.append(f"| --- |{' ---: |' * len(sizes)} --- | --- | --- |")
    lines.append(_row("GB a month", [f"{_gigabytes(size):,.0f}" for size in sizes]))
    ours = [sum(money(size, prices).values()) for size in sizes]
    lines.append(_row("**forebay**, all of it", [f"{usd:,.0f}" for usd in ours], BILL))
    lines += [_billed(one, sizes) for one in ALTERNATIVES]
    lines.append(IN_WORDS)
    by_hand = [f"{month(size)['glue_dpu_hour'] * prices.usd['glue_dpu_hour']:,.0f}" for size in sizes]
    billed = "the same workers for as long, and nothing around them"
    lines.append(_row("Glue with bookmarks", by_hand, billed, "`prices.toml`", str(prices.date)))
    return "\n".join(lines)


def _gigabytes(size: Size) -> float:
    return size.files_a_day * size.kilobytes_a_file / KILOBYTES_IN_A_GB * DAYS


def _billed(one: Alternative, sizes: list[Size]) -> str:
    low, high = one.usd_a_gb
    cells = [f"{_gigabytes(size) * low:,.2f} to {_gigabytes(size) * high:,.2f}" for size in sizes]
    return _row(one.name, cells, one.billed, one.source, one.dated)


def _row(name: str, cells: list[str], billed: str = "", source: str = "", dated: str = "") -> str:
    return f"| {' | '.join([name, *cells, billed, source, dated])} |"
