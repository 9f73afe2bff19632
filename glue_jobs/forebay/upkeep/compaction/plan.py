"""Decides which partitions to rewrite, into how many files, in which order, and what to skip and why, before anything changes.

In: the live files of tables, a policy, the time, a budget. Out: a `Plan`, plain data that can be printed, and the same for the
same input in whatever order it comes. Pure: no clock, no network, no Spark. An invalid policy is `InvalidConfiguration`; a
table that cannot be read or ordered is skipped by name.

* Two rounds. The first, daily, makes medium files of many small ones. The second, weekly, makes large files of those, with
  ordered rows if columns are declared. A round finds no work in the results of the other.
* Cold partitions come before hot ones; within these, the tasks that save most files for their cost.
* A task that does not fit the remaining budget is left for another run, and smaller ones after it still run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from forebay.errors import InvalidConfiguration
from forebay.lake.log.live_file import Partition
from forebay.upkeep.compaction.candidates import candidates_of
from forebay.upkeep.compaction.live_files import TableState, Unreadable
from forebay.upkeep.compaction.policy import Budget, Policy, Rates, Round
from forebay.upkeep.compaction.task import Skipped, Task


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The tasks in the order in which to do them, and what was skipped."""

    round: Round
    at: datetime
    budget: Budget
    rates: Rates
    tasks: tuple[Task, ...]
    skipped: tuple[Skipped, ...]

    def totals(self) -> dict[str, Any]:
        return {
            "tasks": len(self.tasks),
            "tables": len({task.table for task in self.tasks}),
            "files_rewritten": sum(len(task.files) for task in self.tasks),
            "files_saved": sum(task.saved for task in self.tasks),
            "bytes": sum(task.bytes for task in self.tasks),
            "dpu_s": round(sum(task.dpu_s for task in self.tasks), 3),
        }

    def as_rows(self) -> list[dict[str, Any]]:
        """One flat row for each task, then for each skip, with the same columns: `do` is the way, or `skip`."""
        return [*(task.as_row() for task in self.tasks), *(skip.as_row() for skip in self.skipped)]

    def as_json(self) -> str:
        """All of it, but for the paths of the files: there may be a million."""
        tasks = [
            {**asdict(task), "files": len(task.files), "into": task.into, "partition": dict(task.partition)}
            for task in self.tasks
        ]
        return json.dumps(
            {
                "round": self.round,
                "at": self.at.isoformat(),
                "budget": asdict(self.budget),
                "cost": {"dpu_s": Rates.FORMULA, **asdict(self.rates)},
                "totals": self.totals(),
                "tasks": tasks,
                "skipped": [
                    {**asdict(skip), "partition": None if skip.partition is None else dict(skip.partition)}
                    for skip in self.skipped
                ],
            }
        )


def plan(
    tables: Iterable[TableState | Unreadable], policy: Policy, *, now: datetime, budget: Budget | None = None
) -> Plan:
    """Takes the tables one by one, so that they need not all be in memory; planning again what has been done finds
    nothing."""
    wanted: list[Task] = []
    skipped: list[Skipped] = []
    names: set[str] = set()
    for table in tables:
        if table.name in names:
            raise InvalidConfiguration.one(table.name, "is given twice", "a table is compacted once a run")
        names.add(table.name)
        for decided in candidates_of(table, policy, now):
            if isinstance(decided, Task):
                wanted.append(decided)
            else:
                skipped.append(decided)
    budget = budget or Budget()
    tasks, unaffordable = _afford(sorted(wanted, key=_urgency), budget)
    skipped = sorted([*skipped, *unaffordable], key=lambda s: (s.table, s.reason, _sortable(s.partition or ())))
    return Plan(
        round=policy.round, at=now, budget=budget, rates=policy.rates, tasks=tuple(tasks), skipped=tuple(skipped)
    )


# --- which first, and how much ---


def _urgency(task: Task) -> tuple[Any, ...]:
    return (task.hot, -task.saved / max(task.dpu_s, 1e-9), task.table, _sortable(task.partition))


def _sortable(partition: Partition) -> tuple[tuple[str, bool, str], ...]:
    return tuple((column, value is not None, value or "") for column, value in partition)


def _afford(wanted: Iterable[Task], budget: Budget) -> tuple[list[Task], list[Skipped]]:
    tasks: list[Task] = []
    skipped: list[Skipped] = []
    read, dpu_s = 0, 0.0
    for task in wanted:
        if budget.allows(read + task.bytes, dpu_s + task.dpu_s):
            tasks.append(task)
            read, dpu_s = read + task.bytes, dpu_s + task.dpu_s
        else:
            skipped.append(_unaffordable(task, budget))
    return tasks, skipped


def _unaffordable(task: Task, budget: Budget) -> Skipped:
    costs = f"costs {task.bytes:,} bytes and {task.dpu_s:.1f} DPU-seconds"
    if budget.allows(task.bytes, task.dpu_s):
        reason, detail = "over-budget", f"{costs}, more than remains of the budget; a later run compacts it"
    else:
        reason, detail = "larger-than-budget", f"{costs}, more than a whole run may cost: no run will compact it"
    return Skipped(
        table=task.table,
        reason=reason,
        detail=detail,
        partition=task.partition,
        partitions=1,
        files=task.files_before,
        bytes=task.bytes,
    )
