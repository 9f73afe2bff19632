"""Nothing that somebody may still read is deleted."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.upkeep.maintenance.retention import FILES, LOG, retention_of

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


@pytest.mark.parametrize(
    ("configuration", "days", "reader", "keep", "properties"),
    [
        ({}, 7, HOUR, 7 * DAY + HOUR, {FILES: "interval 169 hours"}),
        ({}, 1, HOUR, 7 * DAY, {}),
        ({}, 60, HOUR, 60 * DAY + HOUR, {FILES: "interval 1441 hours", LOG: "interval 1465 hours"}),
        ({}, 7, 9 * DAY, 9 * DAY + HOUR, {FILES: "interval 217 hours"}),
        ({FILES: "interval 26 hours"}, 1, HOUR, 26 * HOUR, {}),
        ({FILES: "interval 2 weeks"}, 7, HOUR, 14 * DAY, {}),
        ({FILES: "INTERVAL 400 HOURS", LOG: "interval 3 days"}, 7, HOUR, 400 * HOUR, {LOG: "interval 193 hours"}),
        ({FILES: "interval 1 month"}, 7, HOUR, None, {}),
    ],
)
def test_files_are_kept_as_long_as_the_longest_of_three_says(
    configuration: dict[str, str], days: int, reader: timedelta, keep: timedelta | None, properties: dict[str, str]
) -> None:
    found = retention_of(configuration, time_travel=days * DAY, longest_reader=reader)
    assert (found.keep, found.properties) == (keep, properties)


@given(st.integers(1, 400), st.integers(0, 9000), st.none() | st.integers(0, 1000))
def test_never_less_than_promised_whatever_the_table_says(days: int, hours: int, said: int | None) -> None:
    configuration = {} if said is None else {FILES: f"interval {said} days"}
    found = retention_of(configuration, time_travel=days * DAY, longest_reader=hours * HOUR)
    assert found.keep is not None
    assert found.keep >= max(days * DAY + HOUR, hours * HOUR + HOUR, (7 if said is None else said) * DAY)
    again = retention_of({**configuration, **found.properties}, time_travel=days * DAY, longest_reader=hours * HOUR)
    assert (again.keep, again.properties) == (found.keep, {})
