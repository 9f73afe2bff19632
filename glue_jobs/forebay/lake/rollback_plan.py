"""The plan of a rollback in progress. All writers of tables or of the ledger check for it after they have acquired their lease.

In: a lake. Out: the plan. A lease alone does not protect a rollback: it ends with a crash. And delta-rs holds the interpreter
while it restores a table, so a lease is not renewed and may expire.
"""

from __future__ import annotations

import json
from typing import Any

from forebay.errors import Halt
from forebay.lake.layout import ROLLBACK_PLAN, rollback_of
from forebay.lake.objects import open_objects

__all__ = ["must_not_be_half_rolled_back", "rollback_plan", "tables_going_back"]


def rollback_plan(lake: str) -> dict[str, Any] | None:
    """The plan, from JSON; None if no rollback is unfinished."""
    text = open_objects(rollback_of(lake)).read(ROLLBACK_PLAN)
    plan: dict[str, Any] | None = None if text is None else json.loads(text)
    return plan


def must_not_be_half_rolled_back(lake: str) -> None:
    """Tables are back, and the ledger does not say so yet. A batch or a retry would go by counts that do not hold."""
    if rollback_plan(lake) is not None:
        raise Halt(f"a rollback of {lake} is unfinished: repeat the `forebay rollback` to finish it, then start again")


def tables_going_back(lake: str) -> frozenset[str]:
    return frozenset(one["table"] for one in (rollback_plan(lake) or {}).get("tables", ()))
