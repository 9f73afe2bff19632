"""`forebay plan-capacity`: the ledger's arrivals, replayed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forebay.operate.lake_view import LakeView
from forebay.operate.looking.capacity import arrivals_of, pace_of
from tests.operate.command import failed, ran
from tests.operate.ledger import entry, write_ledger

NOW = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)


@pytest.fixture
def lake(tmp_path: Path) -> str:
    """Three files every half hour for two days; one that was backfilled, one that was ignored."""
    rows = [
        entry(f"in/{n}-{of}.json", at=NOW - timedelta(minutes=30 * n), batch=n) for n in range(1, 97) for of in range(3)
    ]
    old = entry("in/old.json", at=NOW - timedelta(days=400), claimed_at=NOW - timedelta(hours=1), batch=2)
    late = {**old, "day": NOW.date(), "committed_at": NOW - timedelta(minutes=59)}
    write_ledger(tmp_path, *rows, late, entry("in/x.tmp", at=NOW - timedelta(hours=2), outcome="ignored", batch=4))
    return str(tmp_path)


def test_arrivals_are_those_of_files_that_were_loaded_and_a_backfill_arrives_when_it_is_read(lake: str) -> None:
    found, span_s = arrivals_of(LakeView(lake), days=2, now=NOW)
    assert sum(files for _, files in found) == 3 * 96 + 1
    assert (found[-1], span_s) == ((2 * 86_400 - 1800, 3), 2 * 86_400)
    assert (2 * 86_400 - 3600, 4) in found, "with the file of 400 days ago"
    assert len(arrivals_of(LakeView(lake), days=1, now=NOW)[0]) == 48


def test_a_lake_that_is_younger_than_the_days_is_not_taken_to_have_been_idle_before(tmp_path: Path, lake: str) -> None:
    asked = ("plan-capacity", "--lake", lake, "--freshness", "30 min", "--json")
    month, two_days = (json.loads(ran(*asked, *more))["usd_a_month"] for more in ((), ("--days", "2")))
    assert month == pytest.approx(two_days, rel=0.1)
    assert "289 files of the last 2 days, replayed" in ran(*asked[:-1])
    hour_ago = entry("in/1.json", at=NOW - timedelta(hours=1), batch=1)
    write_ledger(tmp_path / "new", hour_ago)
    assert arrivals_of(LakeView(str(tmp_path / "new")), days=30, now=NOW) == ([(82_800, 1)], 86_400)


def test_the_answer_does_not_depend_on_the_second_at_which_somebody_asks(lake: str) -> None:
    for days in (1, 2, 30):
        first, later = (arrivals_of(LakeView(lake), days=days, now=NOW + timedelta(seconds=s)) for s in (7, 40))
        assert (first[0], later[1] - first[1]) == (later[0], 33)


def test_the_pace_is_that_of_the_last_batches(lake: str) -> None:
    assert {(one.files, one.seconds) for one in pace_of(LakeView(lake)).batches} == {(3, 10.0)}


def test_each_freshness_has_its_delay_and_its_price(lake: str) -> None:
    shown = [line.split() for line in ran("plan-capacity", "--lake", lake, "--days", "3").splitlines()]
    assert [line[:2] for line in shown[1:4]] == [["1", "min"], ["5", "min"], ["30", "min"]]
    one = json.loads(ran("plan-capacity", "--lake", lake, "--days", "3", "--freshness", "30 min", "--json"))
    assert (one["freshness_s"], one["in_time"]) == (1800, 1.0)
    assert 900 < one["most_s"] <= 1800
    assert 5 < one["usd_a_month"] < 100


def test_in_a_lake_of_several_services_one_is_named_and_only_its_files_count(tmp_path: Path, lake: str) -> None:
    others = {"service": "others", "file_id": "f2", "batch": 3}
    write_ledger(tmp_path, entry("in/1-0.json", at=NOW - timedelta(minutes=30), **others))
    assert f"--of: is needed, because {lake} has the services games, others" in failed(
        2, "plan-capacity", "--lake", lake
    )
    assert "289 files of the last 2 days" in ran("plan-capacity", "--lake", lake, "--of", "games")
    assert "1 file of the last 1 day" in ran("plan-capacity", "--lake", lake, "--of", "others")
    assert "--of gamse: never loaded files here (did you mean games?" in failed(
        2, "plan-capacity", "--lake", lake, "--of", "gamse"
    )


def test_a_budget_that_is_too_small_is_said_to_delay_files(lake: str) -> None:
    said = failed(0, "plan-capacity", "--lake", lake, "--days", "3", "--budget-usd-month", "1")
    assert "the budget delays files" in said


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            ("--freshness", "soon"),
            "--freshness: must be a duration from 30 s to 24 h, such as 5 min, 90 s or 1 h; got 'soon'",
        ),
        (("--worker-type", "G.3X"), "--worker-type: must be one of G.025X"),
        (("--days", "0"), "days"),
    ],
)
def test_what_cannot_be_planned_is_refused(lake: str, more: tuple[str, ...], says: str) -> None:
    assert says in failed(2, "plan-capacity", "--lake", lake, *more)


def test_a_lake_without_arrivals_says_so(tmp_path: Path) -> None:
    write_ledger(tmp_path)
    assert "loaded no file in the last 30 days" in failed(2, "plan-capacity", "--lake", str(tmp_path))
