"""Histories on paper in which other declarations are in force whenever a driver takes up a plan that an earlier one settled.
The plan has its own, so the end is the same. And what a batch does side by side is done in either order.

FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import forebay.batch.attempt.carrying_out as carrying_out
import forebay.batch.batch as heart
from forebay.batch.plan import Plan
from forebay.declaration.loading import parse_service
from tests.batch.paper import FIRST
from tests.batch.test_paper_deletions import Deletions
from tests.batch.test_paper_histories import Play, in_time, play_all

DEDUPE = 'columns = [{ name = "event_id" }]\ndedupe = { by = ["event_id"], days = 3 }\n'
RULES = ("", 'overwritten = "ignore"\n', 'overwritten = "replace"\n', 'overwritten = "replace"\non_delete = "forget"\n')
TABLES = (
    'name = "{game}"\n',
    f'name = "{{game}}"\n{DEDUPE}',
    'name = "other"\n',
    'name = "{game}"\nwhere = { a = 1 }\n',
)
OTHERS = [
    parse_service({"service.toml": f'name = "{FIRST}"\n{rule}[[tables]]\n{table}'})
    for rule in RULES
    for table in TABLES
]


def driver(play: Play, dies_after: int | None = None) -> Any:
    """The driver of a history, perhaps with declarations that were pushed since the plan."""
    plans = [content for name, content in play.lake.objects.items() if f"/plans/{FIRST}/" in name]
    mine = play.service
    if plans and all(Plan.decode(one).settled for one in plans) and play.draw.random() < 0.6:
        play.service = play.draw.choice(OTHERS)
        play.said.append(f"in force: {play.service}")
    made = Play.driver(play, dies_after)
    play.service = mine

    def both(one: Callable[[], Any], other: Callable[[], Any]) -> tuple[Any, Any]:
        if play.draw.random() < 0.5:
            return one(), other()
        later = other()
        return one(), later

    for module in (carrying_out, heart):
        play.patch.setattr(module, "both", both)
    return made


class Pushed(Play):
    driver = driver


class DeletionsPushed(Deletions):
    driver = driver


@in_time
@pytest.mark.parametrize("kind", [Pushed, DeletionsPushed])
def test_a_plan_is_carried_out_by_its_own_declarations_and_in_either_order(kind: type[Play]) -> None:
    play_all(kind)
