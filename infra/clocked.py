"""The effect of declared schedules on the functions: reserved names, and tables that wait for their hours. A group waits if its
first round of compaction has hours of its own: the function that looks for tables with small files skips its tables.

Out: problems; comma-separated patterns. The first pattern that fits a table's name counts; `!` before it says that its tables
do not wait. Compaction finds a table's group in the same order.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from forebay.declaration.schedule import schedules_of
from forebay.declaration.service import Service
from forebay.errors import Problem
from forebay.upkeep.compaction.declared import policy_of
from infra.quotas import MOST_CHARACTERS

OF_FUNCTIONS = ("start-ingest", "publish-freshness", "measure-trend", "plan-compaction", "status-page", "start-waiting")
"""The schedules of functions, by name."""


def problems_of_schedules(service: Service) -> list[Problem]:
    problems = [
        Problem(f"service.toml: schedules.{name}", "is the name of a schedule that starts a function", "choose another")
        for name in service.schedules
        if name in OF_FUNCTIONS
    ]
    if (length := len(tables_that_wait(service))) > MOST_CHARACTERS:
        problem = f"groups with their own hours name tables in {length:,} characters; {MOST_CHARACTERS:,} fit"
        problems.append(Problem("service.toml: schedules", problem, "declare them as a family, such as asia_{game}"))
    return problems


def tables_that_wait(service: Service) -> str:
    schedules = schedules_of(service.schedules).values()
    clocked = {one.group for one in schedules if one.job == "compact" and one.round == "first" and one.group}
    policy = policy_of(service)
    patterns = [(pattern, group.name in clocked) for group in policy.groups for pattern in group.tables]
    patterns.append(("*", policy.DEFAULT in clocked))
    needed = [
        pattern if waits else f"!{pattern}"
        for at, (pattern, waits) in enumerate(patterns)
        if waits
        or any(later and ("*" in pattern or fnmatchcase(pattern, other)) for other, later in patterns[at + 1 :])
    ]
    return ",".join(needed)
