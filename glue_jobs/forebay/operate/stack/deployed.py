"""The state of a deployment in AWS: the runs of its jobs, the alarms that ring, and the times of its deployments.

In: a `Deployment`, and a time. Out: plain values, the newest first. The runs are those of Glue, or of EMR Serverless where it
is the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from forebay.aws.emr import AT_WORK, BEFORE, state_of
from forebay.errors import InvalidConfiguration
from forebay.operate.page.content import FAILED, Run
from forebay.operate.stack.aws_answers import Alarm, alarms_in, run_of
from forebay.operate.stack.cost import Hours
from forebay.operate.stack.deployment import Deployment, look_up

DPU_SECONDS = "JobEndedDpuSeconds"
"""The metric that the function `job_ended` publishes when a run has ended."""
DAY_S = 86_400

LONGEST_RUN = timedelta(days=7)


@dataclass(frozen=True)
class Change:
    at: datetime
    what: str


def deployed(stack: str, client: Any) -> Deployment:
    """`InvalidConfiguration` where there is no such deployment."""
    on = look_up(stack, client)
    if not on.is_deployed:
        where = f"account {on.account}, {on.region}"
        hint = "are the name and the region correct? `forebay doctor` says more"
        raise InvalidConfiguration.one(f"stack {stack}", f"has no outputs from forebay in {where}", hint)
    return on


def runs_since(on: Deployment, since: datetime) -> list[Run]:
    if on.emr_application:
        return sorted(_emr_runs(on, since), key=lambda run: run.began_at, reverse=True)
    return [run for job in on.of("Glue::Job") for run in _runs(on, job, since)]


def _emr_runs(on: Deployment, since: datetime) -> Iterator[Run]:
    """EMR lists them by when they were created. A run may have begun before and ended since: none lasts longer than a week."""
    pages, now = on.client("emr-serverless").get_paginator("list_job_runs"), on.now()
    for page in pages.paginate(applicationId=on.emr_application, createdAtAfter=since - LONGEST_RUN):
        for run in page["jobRuns"]:
            job, details = run.get("name", "").partition(BEFORE)[0], run.get("stateDetails", "")
            ended = now if run["state"] in AT_WORK else run["updatedAt"]
            if job.startswith(f"{on.name}-") and ended >= since:
                state, seconds = state_of(run["state"], details), (ended - run["createdAt"]).total_seconds()
                error = details if state in FAILED else ""
                yield Run(job.removeprefix(f"{on.name}-"), state, run["createdAt"], max(0.0, seconds), error)


def emr_hours_since(on: Deployment, since: datetime, services: Iterable[str], jobs: Iterable[str]) -> Hours:
    """The hours of runs that ended since then. EMR's list does not say what runs used, and asking for each takes a request."""
    return Hours(sum(_dpu_seconds(on, since, service, job) for service in services for job in jobs) / 3600, 0.0)


def _dpu_seconds(on: Deployment, since: datetime, service: str, job: str) -> float:
    of_job = {"service": service, "job": f"{on.name}-{job}"}
    found = on.client("cloudwatch").get_metric_statistics(
        Namespace=on.name,
        MetricName=DPU_SECONDS,
        Dimensions=[{"Name": name, "Value": value} for name, value in of_job.items()],
        StartTime=since,
        EndTime=on.now(),
        Period=DAY_S,
        Statistics=["Sum"],
    )
    return sum(float(day["Sum"]) for day in found["Datapoints"])


def _runs(on: Deployment, job: str, since: datetime) -> Iterator[Run]:
    """Glue lists the newest first. One that began before and ended since is one of them."""
    glue, now, asked = on.client("glue"), on.now(), {"JobName": job}
    while True:
        page = glue.get_job_runs(**asked)
        for run in page["JobRuns"]:
            if (run.get("CompletedOn") or now) < since:
                return
            yield run_of(on.name, job, run, now)
        if not page.get("NextToken"):
            return
        asked["NextToken"] = page["NextToken"]


def alarms_ringing(on: Deployment) -> list[Alarm]:
    return alarms_in("ALARM", on.name, on.client("cloudwatch"))


def alarm_changes(on: Deployment, since: datetime) -> Iterator[Change]:
    """When each alarm began to ring, and when it was over."""
    pages = on.client("cloudwatch").get_paginator("describe_alarm_history")
    for page in pages.paginate(HistoryItemType="StateUpdate", StartDate=since, EndDate=on.now()):
        for one in page["AlarmHistoryItems"]:
            if on.owns(one["AlarmName"]):
                name = one["AlarmName"].removeprefix(f"{on.name}-")
                yield Change(one["Timestamp"], f"alarm {name}: {one['HistorySummary']}")


def deploys(on: Deployment, since: datetime) -> Iterator[Change]:
    """Yields each change of the stack: its end, and when it began."""
    pages = on.client("cloudformation").get_paginator("describe_stack_events")
    for page in pages.paginate(StackName=on.stack):
        for one in page["StackEvents"]:
            if one["Timestamp"] < since:
                return
            if one["ResourceType"] == "AWS::CloudFormation::Stack" and one["PhysicalResourceId"] == one["StackId"]:
                why = f": {one['ResourceStatusReason']}" if one.get("ResourceStatusReason") else ""
                yield Change(one["Timestamp"], f"deploy of {on.stack}: {one['ResourceStatus']}{why}")
