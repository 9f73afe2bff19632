"""What a month takes is counted, not typed; prices have a date; and the page says what the code says."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forebay.aws.prices import read_prices
from infra import costs
from infra.bundle import ROOT
from infra.costs import ALARM_METRICS, DASHBOARD_METRICS, HOURS, SIZES, money, month, per_million
from infra.metrics import SOURCES, published
from infra.network import CALLED, CALLED_WITH_EMR
from infra.settings import Settings
from tests.infra import alternatives
from tests.infra.synthesized import Synthesized, text

README = ROOT / "infra" / "README.md"
BY_NAME = {size.name: size for size in SIZES}
LARGE = BY_NAME["large"]


def test_the_readme_has_the_bill_as_it_is_counted_and_what_is_assumed() -> None:
    page, prices = README.read_text(), read_prices()
    assert costs.bill(prices) in page, f"infra/README.md: the bill is now\n{costs.bill(prices)}"
    assert f"written down on {prices.date} for {prices.region}" in page
    for size in SIZES:
        assert f"{size.name}: {size.summary}" in page, f"infra/README.md: {size.name}: {size.summary}"


def test_the_page_about_other_services_compares_as_it_is_counted() -> None:
    table, page = alternatives.markdown(read_prices()), ROOT / "docs" / "concepts" / "cost-compared.md"
    assert table in page.read_text(), f"{page.name}: the table is now\n{table}"
    snowpipe = next(one for one in alternatives.ALTERNATIVES if one.name == "Snowpipe")
    assert snowpipe.usd_a_gb == pytest.approx((0.0074, 0.0148))


def test_idle_costs_at_most_ten_dollars_and_a_million_files_a_day_sixty_for_each_million() -> None:
    prices = read_prices()
    assert sum(money(BY_NAME["idle"], prices).values()) <= 10
    assert LARGE.files_a_day == 1_000_000
    assert per_million(LARGE, prices) <= 60


def test_a_job_that_runs_on_takes_every_hour_and_a_drain_what_its_runs_take() -> None:
    assert month(LARGE)["glue_dpu_hour"] == pytest.approx(730 * LARGE.workers)
    once = BY_NAME["small"]
    twice = replace(once, hours_a_day=2 * once.hours_a_day)
    assert month(twice)["glue_dpu_hour"] == pytest.approx(2 * month(once)["glue_dpu_hour"])
    assert month(twice)["glue_flex_dpu_hour"] == month(once)["glue_flex_dpu_hour"] > 0


def test_a_quarter_worker_costs_a_quarter_and_upkeep_what_it_did() -> None:
    small = replace(LARGE, settings=Settings(worker_type="G.025X"))
    whole = replace(LARGE, settings=Settings())
    assert month(small)["glue_dpu_hour"] == pytest.approx(month(whole)["glue_dpu_hour"] / 4)
    assert month(small)["glue_flex_dpu_hour"] == month(whole)["glue_flex_dpu_hour"]


def test_endpoints_cost_by_the_hour_and_the_zone_and_emr_by_processors_and_memory() -> None:
    zones = "subnet-0a1b2c3d:eu-west-1a,subnet-0a1b2c3e:eu-west-1b"
    vpc = {"vpc_subnets": zones, "vpc_security_groups": "sg-0a1b2c3d"}
    ends = Settings(**vpc, vpc_endpoints="vpc-0a1b2c3d", vpc_route_tables="rtb-0a1b2c3d")
    assert month(replace(LARGE, settings=ends))["vpc_endpoint_hour"] == 730 * len(CALLED) * 2
    assert month(replace(LARGE, settings=Settings(**vpc)))["vpc_endpoint_hour"] == 0
    emr = month(replace(LARGE, settings=Settings(engine="emr-serverless", python_modules="s3://a/b.tar.gz")))
    assert emr["glue_dpu_hour"] == emr["glue_flex_dpu_hour"] == 0
    assert emr["emr_gb_hour"] == 4 * emr["emr_vcpu_hour"] > 4 * 4 * 730 * LARGE.workers


def test_the_readme_says_what_endpoints_and_a_worker_on_emr_cost_by_these_prices() -> None:
    page, prices = " ".join(README.read_text().split()), read_prices()
    usd, of_emr = prices.usd, prices.dpu_hour(is_on_emr=True)
    assert f"is {of_emr:.3f} USD an hour by these prices, and one of Glue {usd['glue_dpu_hour']}" in page
    a_zone = len(CALLED) * HOURS * usd["vpc_endpoint_hour"]
    assert f"`vpc_endpoints`: {len(CALLED)} endpoints ({len((*CALLED, *CALLED_WITH_EMR))} with EMR)" in page
    assert f"{2 * a_zone:.0f} USD a month in two zones, {3 * a_zone:.0f} in three" in page


def test_what_spark_says_at_info_costs_and_at_warn_it_is_silent() -> None:
    said = {level: month(replace(LARGE, settings=Settings(log_level=level)))["log_gb"] for level in ("INFO", "WARN")}
    assert said["INFO"] - said["WARN"] == pytest.approx(730 * 60 * 20e3 / 1e9)


def test_the_default_workers_are_the_fewest_that_there_can_be() -> None:
    """For small files the model's bill is its workers, and a drain is over before a second executor would help."""
    medium = BY_NAME["medium"]
    assert Settings().workers == medium.workers == 2
    four = replace(medium, workers=4)
    assert sum(money(four, read_prices()).values()) > 1.5 * sum(money(medium, read_prices()).values())


def test_upkeep_of_workers_that_flex_does_not_have_is_at_the_usual_price() -> None:
    taken = month(replace(LARGE, settings=Settings(worker_type="G.4X")))
    assert taken["glue_flex_dpu_hour"] == 0
    assert taken["glue_dpu_hour"] > 730 * LARGE.workers * 4


def test_where_keys_name_their_day_the_search_for_missed_files_lists_little() -> None:
    def puts(below: str) -> float:
        return month(replace(LARGE, settings=Settings(reconcile_below=below)))["s3_put_thousand"]

    # 400 days, 30 as old versions, with a mark over each, and not the 16 that are listed anyhow
    million_files_of_444_days = 444 * 1_000_000 / 1000 * 365 / 12 / 1000
    assert puts("") - puts("in/%Y/") == pytest.approx(million_files_of_444_days)


def test_small_files_pay_for_no_transition_and_large_ones_are_stored_for_less() -> None:
    kept = replace(LARGE, settings=Settings(keep_landed_days=100, landing_ia_days=60))
    small, large = (month(replace(kept, kilobytes_a_file=size)) for size in (128, 200))
    assert (small["s3_transition_thousand"], small["s3_infrequent_gb_month"]) == (0, 0)
    assert large["s3_transition_thousand"] == pytest.approx(1_000_000 * 365 / 12 / 1000)
    assert large["s3_infrequent_gb_month"] == pytest.approx(200 * (40 + 30)), (
        "a deleted file is an old version for 30 days"
    )


def test_files_that_go_before_they_would_move_are_never_in_infrequent_access() -> None:
    kept = replace(LARGE, kilobytes_a_file=200, settings=Settings(keep_landed_days=20))
    stored = month(kept)
    assert (stored["s3_transition_thousand"], stored["s3_infrequent_gb_month"]) == (0, 0)
    assert stored["s3_gb_month"] > 200 * (20 + 30)


def test_tables_cost_metrics_only_where_they_are_measured() -> None:
    def metrics(**settings: Any) -> float:
        return month(replace(LARGE, settings=Settings(**settings)))["cloudwatch_metric"]

    of_table = 10 * math.ceil(sum("table" in of for of in published().values()) / 10)
    assert metrics(watched_tables="alpha", table_metrics="beta,alpha") - metrics() == 2 * of_table
    assert metrics(table_metrics="*") - metrics() == LARGE.tables * of_table


def test_alarms_and_the_dashboard_have_as_many_metrics_as_is_counted(made: Synthesized) -> None:
    alarms = [alarm["Properties"] for alarm in made.of("CloudWatch::Alarm").values()]
    looked_at = [
        len([one for one in alarm["Metrics"] if "MetricStat" in one]) if "Metrics" in alarm else 1 for alarm in alarms
    ]
    assert sum(looked_at) == ALARM_METRICS
    (page,) = made.of("CloudWatch::Dashboard").values()
    widgets = json.loads(text(page["Properties"]["DashboardBody"]))["widgets"]
    assert sum(len(widget["properties"].get("metrics", ())) for widget in widgets) == DASHBOARD_METRICS
    assert month(SIZES[0])["cloudwatch_dashboard"] == 0


def test_the_page_says_how_many_metrics_the_code_publishes() -> None:
    said = re.search(r"\| metrics \| \((\d+) metrics of the service \+ (\d+) of each table", README.read_text())
    assert said, "infra/README.md no longer says how metrics are counted"
    dimensions = list(published().values())
    of_service, of_table = dimensions.count(("service",)), sum("table" in of for of in dimensions)
    now = f"infra/README.md: now ({of_service} metrics of the service + {of_table} of each table"
    assert (int(said.group(1)), int(said.group(2))) == (of_service, of_table), now


def test_every_module_whose_events_have_metrics_is_counted() -> None:
    """A module that is not in `SOURCES` publishes metrics that no bill has, and that no alarm can name."""
    files = [file for folder in ("glue_jobs/forebay", "lambdas") for file in (ROOT / folder).rglob("*.py")]
    has = {file.relative_to(ROOT).with_suffix("") for file in files if " = metric(" in file.read_text()}
    names = {".".join(place.parts).removeprefix("glue_jobs.") for place in has}
    assert names <= {source.__name__ for source in SOURCES}, "infra/metrics.py: SOURCES"


# --- prices ---


def written(to: Path, usd: Mapping[str, Any], date: str = "2026-01-31") -> Path:
    lines = [f"date = {date}", 'region = "eu-west-1"', 'source = "my bill"', "[usd]"]
    to.write_text("\n".join([*lines, *(f"{name} = {price!r}" for name, price in usd.items())]))
    return to


def test_with_prices_of_ones_own_each_cell_is_money_and_they_are_summed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usd = {part: 2 if part == "kms_key" else 0 for part in month(SIZES[0])}
    assert costs.main(["--prices", str(written(tmp_path / "prices.toml", usd))]) == 0
    said = capsys.readouterr().out
    assert "USD, by prices of 2026-01-31 in eu-west-1, from my bill:" in said
    assert "| `kms_key` | 2 | 2 | 2 | 2 |" in said
    assert "| **USD in all** | 2.00 | 2.00 | 2.00 | 2.00 |" in said
    assert "| **USD for a million files** | - | 65.75 | 1.32 | 0.07 |" in said


def test_wrong_prices_are_told_all_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usd: dict[str, Any] = {part: 1 for part in month(SIZES[0]) if part != "kms_key"}
    usd |= {"sns_publish_million": "cheap", "glue": 1}
    assert costs.main(["--prices", str(written(tmp_path / "prices.toml", usd, date='"yesterday"'))]) == 2
    said = capsys.readouterr().err
    assert "usd.glue: is unknown" in said
    assert "usd.kms_key: has no price" in said
    assert "usd.sns_publish_million: must be a number; got 'cheap'" in said
    assert "date: must be a date; got 'yesterday'" in said


def test_the_file_of_prices_that_is_here_can_be_read() -> None:
    assert read_prices().usd.keys() == month(SIZES[0]).keys()
