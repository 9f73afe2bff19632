"""The plan of a rollback in progress, or of a drop of tables. All writers of tables or of the ledger check for it after they
have acquired their lease.

In: a lake. Out: the plan. A lease alone does not protect a rollback: it ends with a crash. And delta-rs holds the interpreter
while it restores a table, so a lease is not renewed and may expire.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from forebay.errors import Halt
from forebay.lake.layout import ROLLBACK_PLAN, rollback_of
from forebay.lake.objects import open_objects


def rollback_plan(lake: str) -> dict[str, Any] | None:
    """The plan, from JSON; None if no rollback is unfinished."""
    text = open_objects(rollback_of(lake)).read(ROLLBACK_PLAN)
    plan: dict[str, Any] | None = None if text is None else json.loads(text)
    return plan


def write_plan(lake: str, plan: Mapping[str, Any], must_be_alone: Callable[[], None]) -> None:
    """From now on the plan keeps every writer away. `Halt`, and no plan is left, if a writer began before it was there."""
    store = open_objects(rollback_of(lake))
    if not store.write_over(ROLLBACK_PLAN, json.dumps(plan).encode(), None):
        raise Halt("a rollback or a drop of tables began meanwhile; repeat the command when that has ended")
    try:
        must_be_alone()
    except Halt as lost:
        delete_plan(lake)
        raise Halt(f"{lost}. Nothing was done; repeat the command") from None


def write_plan_again(lake: str, plan: Mapping[str, Any]) -> None:
    """Only for who is alone: the plan is there, and something was added to it."""
    open_objects(rollback_of(lake)).write(ROLLBACK_PLAN, json.dumps(plan).encode())


def delete_plan(lake: str) -> None:
    open_objects(rollback_of(lake)).delete([ROLLBACK_PLAN])


def is_drop(plan: Mapping[str, Any]) -> bool:
    """Its tables go to no version."""
    return any(one["to"] is None for one in plan["tables"])


def command_of(plan: Mapping[str, Any]) -> str:
    """The command that finishes it when it is repeated."""
    one = plan["tables"][0]
    if is_drop(plan):
        return f"forebay tables drop {one['table']}"
    return f"forebay rollback {one['table']} --to {one['to']}" + (" --and-replay" if plan.get("replay") else "")


def must_not_be_half_rolled_back(lake: str) -> None:
    """Tables are back, and the ledger does not say so yet. A batch or a retry would go by counts that do not hold."""
    if (plan := rollback_plan(lake)) is not None:
        what = "drop of tables" if is_drop(plan) else "rollback"
        raise Halt(f"a {what} of {lake} is unfinished: repeat `{command_of(plan)}` to finish it, then try again")


def tables_going_back(lake: str) -> frozenset[str]:
    return frozenset(one["table"] for one in (rollback_plan(lake) or {}).get("tables", ()))
