"""One run of a job as Glue knows it, in our words."""

from __future__ import annotations

from typing import Any

from lambdas.job_ended.events import JobEnded

__all__ = ["ENDED_WELL", "measured", "reason_of", "run_of"]

ENDED_WELL = ("SUCCEEDED", "STOPPED", "EXPIRED")
"""EXPIRED is the continuous job at its maintenance window; STOPPED is a person's wish."""


def run_of(detail: dict[str, Any], glue: Any) -> dict[str, Any]:
    try:
        found: dict[str, Any] = glue.get_job_run(JobName=detail["jobName"], RunId=detail["jobRunId"])["JobRun"]
    except glue.exceptions.EntityNotFoundException:
        return {}
    return found


def reason_of(detail: dict[str, Any], run: dict[str, Any]) -> str:
    """The run's own error message is longer than the event's; where Glue does not give it, the event's must do."""
    return str(run.get("ErrorMessage") or detail.get("message") or "Glue gives none: look into the job's log")


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
