"""One run of a job as its engine knows it, in our words; Glue's are those of both."""

from __future__ import annotations

from typing import Any

from forebay.aws.console import console_domain
from forebay.aws.emr import state_of
from lambdas.job_ended.events import JobEnded

ENDED_WELL = ("SUCCEEDED", "STOPPED", "EXPIRED")
"""EXPIRED is the continuous job at its maintenance window; a person requested STOPPED."""


def ended(detail: dict[str, Any], jobs: Any) -> dict[str, Any]:
    """The event's detail as Glue has it. EMR's names an application and a run, and not always the job."""
    if "applicationId" not in detail:
        return detail
    run_id = detail["jobRunId"]
    try:
        run = jobs.get_job_run(JobName="", RunId=run_id)["JobRun"]
    except jobs.exceptions.EntityNotFoundException:
        run = {"JobName": run_id, "JobRunState": state_of(detail["state"])}
    return {**detail, "jobName": run["JobName"], "state": run["JobRunState"], "message": run.get("ErrorMessage", "")}


def console(detail: dict[str, Any], region: str) -> str:
    home = f"https://{region}.{console_domain(region)}"
    if application := detail.get("applicationId"):
        return f"{home}/emr/home?region={region}#/serverless-applications/{application}"
    return f"{home}/gluestudio/home?region={region}#/job/{detail['jobName']}/run/{detail['jobRunId']}"


def run_of(detail: dict[str, Any], glue: Any) -> dict[str, Any]:
    try:
        found: dict[str, Any] = glue.get_job_run(JobName=detail["jobName"], RunId=detail["jobRunId"])["JobRun"]
    except glue.exceptions.EntityNotFoundException:
        return {}
    return found


def reason_of(detail: dict[str, Any], run: dict[str, Any]) -> str:
    """The run's own error message is longer than the event's; where Glue does not give it, the event's must do."""
    return str(run.get("ErrorMessage") or detail.get("message") or "no reason is given: see the job's log")


def measured(detail: dict[str, Any], run: dict[str, Any], service: str) -> JobEnded:
    """Glue counts DPU-seconds itself where workers come and go; else they are the workers' for all of the time."""
    seconds, workers = float(run.get("ExecutionTime") or 0), run.get("MaxCapacity")
    dpu_seconds = run.get("DPUSeconds") or (seconds * workers if workers else None)
    failed = int(detail["state"] not in ENDED_WELL)
    return JobEnded(
        service=service,
        job=detail["jobName"],
        state=detail["state"],
        seconds=seconds,
        dpu_seconds=dpu_seconds,
        failed=failed,
    )
