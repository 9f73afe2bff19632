"""Whether a rollup tells whose its rows are, or is of nobody."""

from __future__ import annotations

from typing import Any

import pytest

from forebay.declaration.rollup import Rollup
from forebay.declaration.service import Service
from forebay.upkeep.erase.places import is_of_nobody


@pytest.mark.parametrize(
    ("group_by", "columns", "of_nobody"),
    [
        ({"day": "date(at)"}, {"revenue": "sum(amount)"}, True),
        ({"day": "date(at)"}, {"users": "count(distinct user_id)", "some": "APPROX_COUNT_DISTINCT(user_id)"}, True),
        ({"who": "user_id"}, {"n": "count(*)"}, False),
        ({"who": "lower(`User_ID`)"}, {"n": "count(*)"}, False),
        ({"day": "date(at)"}, {"last": "max_by(user_id, at)"}, False),
        ({"day": "date(at)"}, {"last": "count(1) + max(user_id)"}, False),
    ],
)
def test_a_rollup_is_of_nobody_where_no_column_is_made_of_a_person(
    group_by: dict[str, str], columns: dict[str, str], of_nobody: bool
) -> None:
    rollup = Rollup(name="daily", tables=("alpha",), group_by=group_by, columns=columns)
    told: dict[str, Any] = {"subject": "user_id", "secret": "/secret"}
    service = Service(name="games", privacy=told, tables=[{"name": "alpha"}], rollups=(rollup,))  # type: ignore[arg-type]
    assert is_of_nobody("daily", service) is of_nobody
    assert not is_of_nobody("alpha", service)
