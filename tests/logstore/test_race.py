"""Drivers in processes of their own append to one table at once: every commit is there, none twice.

`FOREBAY_RACE=10x25` makes it ten rounds of 25 appends a driver.
"""

from __future__ import annotations

import os

import pytest

from tests.fault_proxy import together
from tests.logstore.conftest import Bucket, DriverProcess

# One worker for all of them: they share three JVMs.
pytestmark = pytest.mark.jvm

ROUNDS, APPENDS = map(int, os.environ.get("FOREBAY_RACE", "1x8").split("x"))


@pytest.mark.deep
@pytest.mark.timeout(3600)
def test_drivers_that_append_at_once_lose_no_commit(bucket: Bucket, drivers: list[DriverProcess]) -> None:
    how_many = len(drivers)
    for driver in drivers:
        driver.ask("configure", settings=bucket.through_proxy)
    for turn in range(ROUNDS):
        table = f"{bucket.lake}/table_{turn}"
        # Created ahead: of two drivers that both create a table, Delta itself tells one to think again.
        drivers[0].ask("append", table=table, times=1, writer="the first")
        collision = bucket.proxy.on(
            "PUT", rf"{table[6:]}/_delta_log/\d+\.json$", then=together(how_many), times=how_many
        )
        for number, driver in enumerate(drivers):
            driver.start("append", table=table, times=APPENDS, writer=f"driver {number}")
        took = [driver.finish() for driver in drivers]
        commits = 1 + how_many * APPENDS
        expected = {"rows": commits * 10, "distinct": commits * 10, "commits": commits, "transactions": commits}
        state = drivers[0].ask("state", table=table)
        print(
            f"{how_many} drivers, round {turn}: {state}, {took}, {bucket.proxy.statuses['PUT', 412]} lost races so far"
        )
        assert state == expected
        # At the least the first commits of all met, and one of them won.
        assert collision.taken == how_many
    assert bucket.proxy.statuses["PUT", 412] >= ROUNDS * (how_many - 1)
