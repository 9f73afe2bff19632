"""What a period of a feed is: which file is in which, where its files lie, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from forebay.declaration.complete import Complete, Period
from forebay.declaration.loading import parse_service
from forebay.errors import InvalidConfiguration
from forebay.landed_file import LandedFile
from forebay.ledger.ignored import PERIOD_MARKER, why_ignored

HOUR = {"folder": "in/%Y/%m/%d/%H/", "marker": "_DONE"}
DAY = {"folder": "in/dt=%Y-%m-%d/", "period": "day", "marker": "_DONE"}


def rule(**said: Any) -> Complete:
    return Complete.model_validate(said)


def file(key: str, at: datetime | None = None) -> LandedFile:
    return LandedFile("drops", key, 1, "e", event_time=at)


@pytest.mark.parametrize(
    ("said", "key", "begins", "ends"),
    [
        (HOUR, "in/2026/11/24/10/a.json", "2026-11-24T10:00", "2026-11-24T11:00"),
        (DAY, "in/dt=2026-11-24/x/a.json", "2026-11-24T00:00", "2026-11-25T00:00"),
        (DAY | {"zone": "Asia/Tokyo"}, "in/dt=2026-11-24/a", "2026-11-23T15:00", "2026-11-24T15:00"),
        (DAY | {"zone": "Europe/Berlin"}, "in/dt=2026-10-25/a", "2026-10-24T22:00", "2026-10-25T23:00"),
        (HOUR | {"zone": "Europe/Berlin"}, "in/2026/10/25/02/a", "2026-10-25T00:00", "2026-10-25T02:00"),
        (HOUR | {"folder": "*/%Y/%m/%d/%H-*/"}, "alpha/2026/11/24/10-b/a", "2026-11-24T10:00", "2026-11-24T11:00"),
        (DAY | {"folder": "in/%Y/%Y%m%d-"}, "in/2026/20261124-a", "2026-11-24T00:00", "2026-11-25T00:00"),
    ],
)
def test_the_key_of_a_file_names_its_period(said: dict[str, Any], key: str, begins: str, ends: str) -> None:
    start, end = (datetime.fromisoformat(one).replace(tzinfo=UTC) for one in (begins, ends))
    assert rule(**said).period_of(file(key)) == Period(start, end)


@pytest.mark.parametrize(
    "key",
    [
        "in/2026/13/24/10/a",
        "in/2026/11/24/24/a",
        "in/2026/1/24/10/a",
        "x/in/2026/11/24/10/a",
        "in/9999/12/31/23/a",
        "in/9999/12/31/22/a",
        "in/0001/01/01/00/a",
        "in/2026/11/24/10",
        "in/\uff12\uff10\uff12\uff16/11/24/10/a",
        "in/0000/11/24/10/a",
        "",
    ],
)
def test_a_key_that_names_no_moment_is_in_no_period(key: str) -> None:
    assert rule(**HOUR).period_of(file(key)) is None


def test_an_hour_that_the_clocks_leave_out_is_in_no_period_and_a_day_without_its_midnight_is_one() -> None:
    berlin = rule(**HOUR | {"zone": "Europe/Berlin"})
    assert berlin.period_of(file("in/2026/03/29/02/a")) is None
    three = datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert berlin.period_of(file("in/2026/03/29/03/a")) == Period(three, three.replace(hour=2))
    cairo = rule(**DAY | {"zone": "Africa/Cairo"}).period_of(file("in/dt=2026-04-24/a"))
    assert cairo == Period(datetime(2026, 4, 23, 22, tzinfo=UTC), datetime(2026, 4, 24, 21, tzinfo=UTC))


def test_hours_follow_each_other_where_clocks_jump_in_the_middle_of_one_or_over_two() -> None:
    """On Chatham from 02:45 to 03:45, at Troll from 01:00 to 03:00, on Lord Howe by half an hour."""
    for zone, day in (
        ("Pacific/Chatham", "2026/09/27"),
        ("Antarctica/Troll", "2026/03/29"),
        ("Australia/Lord_Howe", "2026/10/04"),
        ("Europe/Berlin", "2026/03/29"),
    ):
        hours = rule(**HOUR | {"zone": zone})
        found = [(hour, hours.period_of(file(f"in/{day}/{hour:02}/a"))) for hour in range(24)]
        there = [(hour, period) for hour, period in found if period is not None]
        for (_, one), (_, following) in pairwise(there):
            assert one.end == following.start, zone
        for hour, period in there:
            assert hours.has(period), zone
            assert hours.prefixes(period, list) == [f"in/{day}/{hour:02}/"]
        minutes = [(period.end - period.start) // timedelta(minutes=1) for _, period in there]
        assert sum(minutes) == {"Australia/Lord_Howe": 1410, "Antarctica/Troll": 1320}.get(zone, 1380)


@pytest.mark.parametrize("at", [datetime.max, datetime.min])
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
def test_a_time_at_the_end_of_time_is_in_no_period(at: datetime, zone: str) -> None:
    """A message may say so. A batch must not fail because of it."""
    assert rule(quiet_minutes=5, zone=zone).period_of(file("a", at.replace(tzinfo=UTC))) is None


def test_a_year_that_is_written_twice_must_be_the_same() -> None:
    assert rule(**DAY | {"folder": "in/%Y/%Y%m%d-"}).period_of(file("in/2025/20261124-a")) is None


def test_without_a_folder_the_time_at_which_s3_got_a_file_decides() -> None:
    quiet, at = rule(quiet_minutes=5), datetime(2026, 11, 24, 10, 59, 59, 999_000, tzinfo=UTC)
    ten = datetime(2026, 11, 24, 10, tzinfo=UTC)
    period = quiet.period_of(file("a", at))
    assert period == Period(ten, ten.replace(hour=11))
    assert quiet.period_of(file("a")) is None
    assert quiet.may_be_in(period, file("a", ten.replace(hour=11)))
    assert not quiet.may_be_in(period, file("a", ten.replace(hour=11, minute=2)))


def test_the_files_of_a_period_lie_below_prefixes_and_only_a_star_needs_a_listing() -> None:
    asked, inside = [], [f"in/2026/01/04/09/{name}/" for name in ("a-x", "a-x-y", "c")]

    def below(prefix: str) -> list[str]:
        asked.append(prefix)
        return ["in/alpha/", "in/beta/"] if prefix == "in/" else [one for one in inside if one.startswith(prefix)]

    period = rule(**HOUR).period_of(file("in/2026/01/04/09/a"))
    assert period is not None
    assert rule(**HOUR).prefixes(period, below) == ["in/2026/01/04/09/"]
    assert asked == []
    starred = rule(**HOUR | {"folder": "in/*/%Y/%m/%d/%H/"})
    assert starred.prefixes(period, below) == ["in/alpha/2026/01/04/09/", "in/beta/2026/01/04/09/"]
    inner = rule(**HOUR | {"folder": "in/%Y/%m/%d/%H/a-*/b"})
    assert inner.prefixes(period, below) == ["in/2026/01/04/09/a-x/b", "in/2026/01/04/09/a-x-y/b"]
    assert rule(**HOUR | {"folder": "in/%Y/%m/%d/%H/*"}).prefixes(period, below) == ["in/2026/01/04/09/"]


def test_each_prefix_is_what_the_keys_of_its_files_begin_with_in_any_zone() -> None:
    for zone in ("UTC", "America/St_Johns", "Asia/Kathmandu"):
        there = rule(**HOUR | {"zone": zone})
        period = there.period_of(file("in/2026/03/29/23/a"))
        assert period is not None
        assert there.prefixes(period, lambda _: []) == ["in/2026/03/29/23/"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({}, "exactly one of marker, manifest and quiet_minutes"),
        (HOUR | {"quiet_minutes": 5}, "exactly one of"),
        ({"marker": "_DONE"}, "needs a folder"),
        (HOUR | {"folder": "in/%Y/%m/%d/"}, '%Y, %m, %d, %H for period = "hour"; for days, write period = "day"'),
        (DAY | {"folder": "in/%Y/%m/%d/%H/"}, "%Y, %m, %d for"),
        (HOUR | {"folder": "in/%Y/%j/%H/"}, "has %j"),
        (HOUR | {"folder": "in/%Y/%m/%d/%H%"}, "has %;"),
        (HOUR | {"folder": "s3://drops/in/%Y/%m/%d/%H/"}, "without a bucket"),
        (HOUR | {"marker": "done/_DONE"}, "must be the name of an object"),
        (HOUR | {"zone": "Mars"}, "time zone"),
    ],
)
def test_what_cannot_be_meant_is_refused(said: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        rule(**said)


def service(more: str) -> Any:
    return parse_service({"service.toml": f'name = "s"\n{more}\n[[tables]]\nname = "t"\n'})


def test_a_marker_is_no_data_whatever_its_name() -> None:
    declared = service('envelope.complete = { folder = "in/%Y/%m/%d/%H/", marker = "ready.json" }')
    assert why_ignored(declared, file("in/2026/11/24/10/ready.json")) == PERIOD_MARKER
    assert why_ignored(declared, file("in/2026/11/24/10/x/ready.json")) == ""
    assert why_ignored(declared, file("in/ready.json")) == ""


def test_a_folder_outside_of_its_feed_is_refused() -> None:
    feeds = '[[feeds]]\nname = "a"\nprefix = "in/a/"\ncomplete = { folder = "in/b/%Y/%m/%d/%H/", quiet_minutes = 5 }'
    with pytest.raises(InvalidConfiguration, match="no file under in/a/"):
        service(feeds)


def test_a_misspelt_setting_gets_a_hint() -> None:
    with pytest.raises(InvalidConfiguration, match="did you mean quiet_minutes"):
        service("envelope.complete = { quiet_minuts = 5 }")
