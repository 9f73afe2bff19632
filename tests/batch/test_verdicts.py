"""The limits of expectations, which are shares of a table's rows in a batch."""

from __future__ import annotations

import pytest

from forebay.batch.accounting import Fate
from forebay.batch.expectations import verdicts
from forebay.declaration.loading import parse_service

TABLE = """
name = "s"
[[tables]]
name = "a"
columns = [{ name = "level", type = "long" }]
"""


@pytest.mark.parametrize(
    ("percent", "rows", "violated"), [("0.57", 10_000, 57), ("1.1", 3_000, 33), ("0.07", 10_000, 7)]
)
@pytest.mark.parametrize("limit", ["fail", "alarm"])
def test_a_share_that_is_exactly_the_limit_is_not_above_it(limit: str, percent: str, rows: int, violated: int) -> None:
    expectation = f'[tables.expectations]\nx = {{ check = "level > 0", {limit}_above_percent = {percent} }}'
    service = parse_service({"service.toml": TABLE + expectation})
    for more in (0, 1):
        good, bad = rows - violated - more, violated + more
        fates = [Fate("1", "write", good, "a", 0), Fate("1", "write", bad, "a", 0, ("x",))]
        (found,) = verdicts(service, fates)
        assert (found.failed, found.rings) == (bool(more) and limit == "fail", bool(more))
