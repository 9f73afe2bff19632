"""A plan that newer code wrote, read by older code after a rollback."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forebay.batch.retry_plan import Choice, RetryPlan
from forebay.errors import Halt

PLAN = RetryPlan(3, 17, "2026-05-05T00:00:00+00:00", Choice("parked", table="alpha"), {"name": "studio"}, 4)


def by_newer_code(**more: Any) -> bytes:
    plain = json.loads(PLAN.as_json())
    plain["choice"] |= more.pop("choice", {})
    return json.dumps({**plain, **more}).encode()


def test_a_plan_is_read_as_it_was_written() -> None:
    assert RetryPlan.of_json(PLAN.as_json()) == PLAN


@pytest.mark.parametrize("more", [{"colour": None}, {"colours": []}, {"choice": {"colour": None}}], ids=str)
def test_what_is_empty_does_not_stop_older_code(more: dict[str, Any]) -> None:
    assert RetryPlan.of_json(by_newer_code(**more)) == PLAN


@pytest.mark.parametrize("more", [{"colour": "blue"}, {"choice": {"colour": "blue"}}], ids=str)
def test_what_may_decide_is_refused_with_the_remedy(more: dict[str, Any]) -> None:
    with pytest.raises(
        Halt, match=r"a retry of held records .*does not understand colour of it; start that version again"
    ):
        RetryPlan.of_json(by_newer_code(**more))
