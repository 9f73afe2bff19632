"""Arrivals through the rules: files are in time, runs cost about what the best fixed setting costs, and idle costs nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forebay.aws.prices import read_prices
from forebay.capacity.pace import Pace
from forebay.capacity.plan import choices, usd_an_hour
from forebay.capacity.rules import Rules, share_of_budget
from forebay.capacity.runs import Truth
from forebay.capacity.simulation import Arrivals, Fixed, simulate

HOUR, DAY = 3600.0, 86_400.0
TRUTH = Truth(lambda files: 10 + 0.05 * files)
FIXED = [Fixed(60, stays=True), *(Fixed(60 * minutes) for minutes in (1, 2, 3, 5, 10, 20, 30))]


def steady(a_second: float, hours: float, seed: int = 1) -> Arrivals:
    """At random times, at one rate."""
    chance, at, found = Random(seed), 0.0, []
    while at < hours * HOUR:
        found.append((at, 1))
        at += chance.expovariate(a_second)
    return found


def wave(most_a_second: float, hours: float, seed: int = 1) -> Arrivals:
    """By day; at night nothing comes."""
    chance = Random(seed)
    return [
        (at, files)
        for at in range(0, int(hours * HOUR), 10)
        if (files := round(10 * most_a_second * max(0.0, math.sin(2 * math.pi * at / DAY)) * 2 * chance.random()))
    ]


def bursts(files: int, seconds: float, hours: int, seed: int = 1) -> Arrivals:
    """One an hour, at some time of it."""
    chance, found = Random(seed), []
    for hour in range(hours):
        begin = hour * HOUR + chance.random() * (HOUR - seconds)
        found += [(begin + chance.random() * seconds, 1) for _ in range(files)]
    return sorted(found)


PATTERNS: dict[str, Callable[[], Arrivals]] = {
    "a file now and then": lambda: steady(1 / 1200, 48),
    "one a minute": lambda: steady(1 / 60, 24),
    "one in ten seconds": lambda: steady(0.1, 12),
    "one a second": lambda: steady(1, 4),
    "four a second": lambda: steady(4, 2),
    "days and nights": lambda: wave(3, 36),
    "busy days": lambda: wave(10, 12),
    "short bursts": lambda: bursts(500, 300, 12),
    "long bursts": lambda: bursts(5000, 600, 6),
}


@pytest.mark.parametrize("minutes", [5, 30])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_files_are_in_time_and_cost_at_most_a_tenth_more_than_with_the_best_fixed_setting(
    pattern: str, minutes: int
) -> None:
    arrivals, freshness_s = PATTERNS[pattern](), 60 * minutes
    mine = simulate(arrivals, Rules(freshness_s), TRUTH)
    assert mine.within(freshness_s) >= 0.999
    assert mine.percentile(1) <= 1.1 * freshness_s
    fixed = [simulate(arrivals, one, TRUTH) for one in FIXED if one.look_every_s <= freshness_s]
    best = min(one.billed_s for one in fixed if one.within(freshness_s) >= 0.999)
    assert mine.billed_s <= 1.1 * best


@pytest.mark.parametrize("pattern", ["one in ten seconds", "one a second", "days and nights"])
def test_a_freshness_shorter_than_a_start_holds_while_files_come(pattern: str) -> None:
    arrivals = PATTERNS[pattern]()
    mine, on = (simulate(arrivals, by, TRUTH) for by in (Rules(60), Fixed(60, stays=True)))
    assert mine.within(60) >= 0.98
    assert mine.billed_s <= 1.05 * on.billed_s


def test_a_service_without_arrivals_starts_nothing() -> None:
    for freshness_s in (30, 300, 3600):
        done = simulate([], Rules(freshness_s), TRUTH, until=7 * DAY)
        assert (done.runs, done.billed_s) == (0, 0)
        one = simulate([(5.0, 1)], Rules(freshness_s), TRUTH, until=7 * DAY)
        assert one.runs == 1
        assert one.billed_s < HOUR


def test_after_an_outage_of_six_hours_the_backlog_goes_at_once_and_the_freshness_holds_again() -> None:
    arrivals = steady(2, 24)

    def down(at: float) -> bool:
        return 6 * HOUR <= at < 12 * HOUR

    done = simulate(arrivals, Rules(300), TRUTH, down=down)
    assert sum(files for _, files in done.late) == len(arrivals), "nothing is left"
    backlog_s = TRUTH.work_s(2000) * 6 * HOUR * 2 / 2000
    caught_up = 12 * HOUR + 2 * backlog_s
    late_again = simulate([one for one in arrivals if one[0] > caught_up], Rules(300), TRUTH)
    assert done.percentile(1) <= 6 * HOUR + 2 * backlog_s
    assert late_again.within(300) >= 0.999


def test_a_budget_is_kept_and_said_to_delay_files() -> None:
    hour = usd_an_hour(read_prices(), "G.1X", 2)
    arrivals = steady(2, 48)
    share = share_of_budget(100, hour)
    held = simulate(arrivals, Rules(300, share), TRUTH)
    assert held.gave_way
    last = arrivals[-1][0]
    assert held.billed_s * hour / HOUR <= 100 * (last + DAY) / (730 * HOUR)
    assert not simulate(arrivals, Rules(300, share_of_budget(10_000, hour)), TRUTH).gave_way


def test_three_choices_say_what_less_delay_costs() -> None:
    tried = choices(wave(1, 48), Pace(), [60, 300, 1800], span_s=2 * DAY, usd_hour=0.88)
    assert [one.freshness_s for one in tried] == [60, 300, 1800]
    assert tried[0].usd_a_month > tried[1].usd_a_month > tried[2].usd_a_month > 0
    assert tried[0].p99_s < tried[1].p99_s < tried[2].p99_s <= 1800
    assert min(one.in_time for one in tried) >= 0.99


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.tuples(st.floats(0, 6 * HOUR), st.integers(1, 300)), min_size=1, max_size=40),
    st.sampled_from([300, 600, 1800, 7200]),
    st.floats(60, 90),
)
def test_whatever_comes_is_loaded_and_in_time_as_far_as_the_capacity_allows(
    arrivals: list[tuple[float, int]], freshness_s: int, start_s: float
) -> None:
    arrivals = sorted(arrivals)
    done = simulate(arrivals, Rules(freshness_s), Truth(TRUTH.work_s, start_s=start_s))
    files = sum(count for _, count in arrivals)
    assert sum(count for _, count in done.late) == files
    work_s = 20 + 0.05 * files
    assert done.percentile(1) <= freshness_s + work_s
    assert done.billed_s <= done.runs * (start_s + 35 + 3 * 3600)
