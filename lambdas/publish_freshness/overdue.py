"""Finds schedules without a successful run for longer than their interval: a schedule that is off, a job that never
starts, or one that fails each time.

In: the schedules' names. Out: how many are overdue. A schedule says itself which job it starts, with which arguments, and on
which days; its last change is when it began. EMR lists runs without their arguments, so there any run of the job counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from lambdas.publish_freshness.events import SchedulesChecked

GRACE = timedelta(hours=12)
"""For a run to wait for another one, and to end."""
A_PAGE, PAGES = 200, 10
DAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")


def check_schedules(
    service: str, group: str, names: list[str], *, scheduler: Any, jobs: Any, arguments_known: bool, now: datetime
) -> SchedulesChecked:
    late = [name for name in names if _is_overdue(name, group, scheduler, jobs, arguments_known, now)]
    return SchedulesChecked(service=service, overdue=len(late), which=",".join(late) or None)


def longest_pause(expression: str) -> timedelta:
    """Between two runs, of such as `cron(30 2 ? * MON-SAT *)`."""
    days = expression.removesuffix(")").split()[4]
    on = sorted({day for part in days.split(",") for day in _days(part)}) if days != "?" else list(range(7))
    return timedelta(days=max((after - day) % 7 or 7 for day, after in zip(on, [*on[1:], on[0]], strict=True)))


def _days(part: str) -> Iterator[int]:
    first, _, last = part.partition("-")
    begin, end = DAYS.index(first), DAYS.index(last or first)
    yield from ((begin + n) % 7 for n in range((end - begin) % 7 + 1))


def _is_overdue(name: str, group: str, scheduler: Any, jobs: Any, arguments_known: bool, now: datetime) -> bool:
    try:
        found = scheduler.get_schedule(Name=name, GroupName=group)
    except scheduler.exceptions.ResourceNotFoundException:
        return True
    since = now - longest_pause(found["ScheduleExpression"]) - GRACE
    if found["LastModificationDate"] > since:
        return False
    request = json.loads(found["Target"]["Input"])
    wanted = request["Arguments"].items() if arguments_known else {}.items()
    return not any(
        run["JobRunState"] == "SUCCEEDED" and wanted <= run.get("Arguments", {}).items()
        for run in _runs(jobs, request["JobName"], since)
    )


def _runs(jobs: Any, job: str, since: datetime) -> Iterator[dict[str, Any]]:
    more: dict[str, str] = {}
    for _ in range(PAGES):
        page = jobs.get_job_runs(JobName=job, MaxResults=A_PAGE, **more)
        for run in page["JobRuns"]:
            if run["StartedOn"] < since:
                return
            yield run
        if not page.get("NextToken"):
            return
        more = {"NextToken": page["NextToken"]}
