"""What a month takes is counted, not typed; and money is only told at prices that were given."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from infra import costs
from infra.bundle import ROOT
from infra.costs import SIZES, month, table
from infra.metrics import published
from infra.settings import Settings

README = ROOT / "infra" / "README.md"


def test_the_readme_has_the_table_as_it_is_counted() -> None:
    text = (ROOT / "infra" / "README.md").read_text()
    lines = [line for line in table().splitlines() if "cloudwatch_metric" not in line]  # with each event another number
    assert "\n".join(lines) in text, f"infra/README.md: the table of `python -m infra.costs` is now\n{table()}"
    for size in SIZES:
        assert f"{size.name}: {size.said}" in text, f"infra/README.md: {size.name}: {size.said}"


def test_a_job_that_runs_on_takes_every_hour_and_a_drain_what_its_runs_take() -> None:
    large, upkeep = SIZES[2], month(replace(SIZES[2], workers=0))["glue_dpu_hour"]
    assert month(large)["glue_dpu_hour"] == pytest.approx(730 * large.workers + upkeep)
    once, upkeep = SIZES[0], month(replace(SIZES[0], minutes_a_run=0))["glue_dpu_hour"]
    twice = replace(once, minutes_a_run=2 * once.minutes_a_run)
    assert month(twice)["glue_dpu_hour"] - upkeep == pytest.approx(2 * (month(once)["glue_dpu_hour"] - upkeep))
    assert upkeep > 0


def test_where_keys_name_their_day_the_search_for_missed_files_lists_little() -> None:
    whole, by_day = (month(SIZES[2], Settings(reconcile_below=below))["s3_put_thousand"] for below in ("", "in/%Y/"))
    million_files_of_384_days = 384 * 1_000_000 / 1000 * 365 / 12 / 1000
    assert whole - by_day == pytest.approx(million_files_of_384_days)


def test_with_prices_each_cell_is_money_and_they_are_summed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text("\n".join(f"{part} = {2 if part == 'kms_key' else 0}" for part in month(SIZES[0])))
    assert costs.main(["--prices", str(prices)]) == 0
    said = capsys.readouterr().out
    assert "| `kms_key` | 4 | 4 | 4 |" in said
    assert said.rstrip().endswith("| in all | 4 | 4 | 4 |")


def test_wrong_prices_are_told_all_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prices = tmp_path / "prices.toml"
    good = [f"{part} = 1" for part in month(SIZES[0]) if part not in ("kms_key", "sns_publish_million")]
    prices.write_text("\n".join([*good, 'sns_publish_million = "cheap"', "glue = 1"]))
    assert costs.main(["--prices", str(prices)]) == 2
    said = capsys.readouterr().err
    assert "glue: is unknown" in said
    assert "kms_key: has no price" in said
    assert "sns_publish_million: must be a number; got 'cheap'" in said


def test_the_page_says_how_many_metrics_the_code_publishes() -> None:
    said = re.search(r"\| metrics \| \((\d+) metrics of the service \+ (\d+) of each table", README.read_text())
    assert said, "infra/README.md no longer says how metrics are counted"
    dimensions = list(published().values())
    assert int(said.group(1)) == dimensions.count(("service",))
    assert int(said.group(2)) == sum("table" in of for of in dimensions)
