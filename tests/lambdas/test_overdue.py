"""A schedule whose runs never succeed is told, whatever the reason; and a key that cannot be used."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lambdas.publish_freshness.measuring import check_keys
from lambdas.publish_freshness.overdue import check_schedules, longest_pause

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "days"),
    [
        ("cron(0 1 * * ? *)", 1),
        ("cron(30 2 ? * SUN *)", 7),
        ("cron(0 4 ? * MON-SAT *)", 2),
        ("cron(0 4 ? * MON,THU *)", 4),
        ("cron(0 4 ? * SAT-MON *)", 5),
    ],
)
def test_how_long_a_schedule_may_pause(expression: str, days: int) -> None:
    assert longest_pause(expression) == timedelta(days=days)


class Scheduler:
    class exceptions:  # noqa: N801
        class ResourceNotFoundException(Exception):
            pass

    def __init__(self, changed_days_ago: float = 30, **said: str) -> None:
        self.changed, self.said = NOW - timedelta(days=changed_days_ago), said

    def get_schedule(self, **asked: Any) -> dict[str, Any]:
        assert asked["GroupName"] == "forebay-dev"
        if asked["Name"] not in self.said:
            raise self.exceptions.ResourceNotFoundException
        wish = {"JobName": "maintain", "Arguments": {"--vacuum": asked["Name"]}}
        expression = self.said[asked["Name"]]
        return {
            "ScheduleExpression": expression,
            "LastModificationDate": self.changed,
            "Target": {"Input": json.dumps(wish)},
        }


class Jobs:
    """Runs, newest first, two a page."""

    def __init__(self, *runs: tuple[str, str, float]) -> None:
        self.runs = [
            {"JobRunState": state, "Arguments": {"--vacuum": vacuum}, "StartedOn": NOW - timedelta(days=days)}
            for vacuum, state, days in runs
        ]

    def get_job_runs(self, *, JobName: str, MaxResults: int, NextToken: str = "0") -> dict[str, Any]:  # noqa: N803
        assert (JobName, MaxResults) == ("maintain", 200)
        at = int(NextToken)
        more = {"NextToken": str(at + 2)} if at + 2 < len(self.runs) else {}
        return {"JobRuns": self.runs[at : at + 2], **more}


DAILY, WEEKLY = "cron(0 4 * * ? *)", "cron(0 4 ? * SUN *)"


@pytest.mark.parametrize(
    ("runs", "late"),
    [
        ([("lite", "SUCCEEDED", 1), ("full", "SUCCEEDED", 6)], ""),
        ([("lite", "SUCCEEDED", 1), ("lite", "FAILED", 2), ("lite", "FAILED", 3), ("full", "SUCCEEDED", 7.2)], ""),
        ([("lite", "RUNNING", 0.1), ("lite", "FAILED", 1), ("full", "SUCCEEDED", 6)], "lite"),
        ([("lite", "SUCCEEDED", 1), ("full", "FAILED", 5), ("full", "SUCCEEDED", 12)], "full"),
        ([], "lite,full"),
    ],
)
def test_a_schedule_without_a_run_that_succeeded_is_overdue(runs: list[tuple[str, str, float]], late: str) -> None:
    scheduler = Scheduler(lite=DAILY, full=WEEKLY)
    found = check(scheduler, Jobs(*runs), ["lite", "full"])
    assert (found.overdue, found.which or "") == (len([one for one in late.split(",") if one]), late)


def test_a_schedule_that_is_new_or_was_changed_has_its_time_and_one_that_is_gone_is_overdue() -> None:
    assert check(Scheduler(changed_days_ago=1, lite=DAILY), Jobs(), ["lite"]).overdue == 0
    assert check(Scheduler(changed_days_ago=2, lite=DAILY), Jobs(), ["lite"]).overdue == 1
    assert check(Scheduler(changed_days_ago=1), Jobs(), ["lite"]).overdue == 1


def test_where_runs_are_listed_without_arguments_any_run_of_the_job_counts() -> None:
    scheduler, jobs = Scheduler(full=WEEKLY), Jobs(("lite", "SUCCEEDED", 1))
    assert check(scheduler, jobs, ["full"]).overdue == 1
    assert check(scheduler, jobs, ["full"], arguments_known=False).overdue == 0


def check(scheduler: Scheduler, jobs: Jobs, names: list[str], *, arguments_known: bool = True) -> Any:
    where = {"scheduler": scheduler, "jobs": jobs, "arguments_known": arguments_known, "now": NOW}
    return check_schedules("games", "forebay-dev", names, **where)


class Kms:
    def __init__(self, **states: str) -> None:
        self.states = states

    def describe_key(self, KeyId: str) -> Any:  # noqa: N803
        return {"KeyMetadata": {"KeyState": self.states[KeyId]}}


def test_a_key_that_is_disabled_or_about_to_go_is_told() -> None:
    assert check_keys("games", ["one"], Kms(one="Enabled")).unusable == 0
    found = check_keys("games", ["one", "two", "three"], Kms(one="Enabled", two="Disabled", three="PendingDeletion"))
    assert (found.unusable, found.which) == (2, "two is Disabled, three is PendingDeletion")
