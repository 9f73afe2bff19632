"""A run of the ingest job, unless one is there, nothing waits (drain mode), or a person stopped the last one. After a recent
failure it waits first. A run that is older than the job's definition is asked to stop after its batch. The next call then
starts one with the deployed code. If that code fails at once, repeatedly, runs get the earlier code, and a message is sent.
Run twice at once it starts one: the job allows no second run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from lambdas.messages import send_message
from lambdas.publish_freshness.ledger_log import batch_since
from lambdas.publish_freshness.measuring import counts
from lambdas.start_ingest.code import code_for
from lambdas.start_ingest.ending import ask_to_stop, idle, outdated
from lambdas.start_ingest.stay_on import busy_percent
from lambdas.start_ingest.why_not import why_not

__all__ = ["Settings", "start"]


@dataclass(frozen=True)
class Settings:
    job: str
    queue_url: str
    mode: str
    checkpoint: str
    lake: str
    alarm_topic: str
    engine: str = "glue"
    stay_on_at_percent: int = 50
    leave_after_minutes: int = 30
    drain_minutes_at_most: int = 90


def start(settings: Settings, *, glue: Any, sqs: Any, s3: Any, sns: Any, now: datetime) -> str:
    runs = glue.get_job_runs(JobName=settings.job, MaxResults=50)["JobRuns"]
    job = glue.get_job(JobName=settings.job)["Job"]
    if outdated(runs, job):
        ask_to_stop(s3, settings.checkpoint)
        return "the job changed since its run began: the run was asked to stop after its batch"
    code = code_for(
        runs, job, s3=s3, checkpoint=settings.checkpoint, batch_since=partial(batch_since, s3, settings.lake)
    )
    waiting, held = counts(sqs, settings.queue_url)
    quiet = settings.mode == "auto" and not waiting + held
    if quiet and idle(runs, s3, settings.lake, now=now, minutes=settings.leave_after_minutes):
        ask_to_stop(s3, settings.checkpoint)
        return "nothing comes: the run that stayed on was asked to stop"
    if reason := why_not(runs, now):
        return reason
    if settings.mode != "continuous" and not waiting:
        return "nothing waits"
    stays = settings.mode == "auto" and busy_percent(runs, now) >= settings.stay_on_at_percent
    drains = settings.mode != "continuous" and not stays
    try:
        glue.start_job_run(JobName=settings.job, **asked_for(code.request, drains, settings))
    except glue.exceptions.ConcurrentRunsExceededException:
        return "it runs already"
    if code.is_first:
        tell(settings, code.stays, sns)
    return ("started, to stay on" if stays else "started") + (" with the code of before" if code.request else "")


def asked_for(code: dict[str, Any], drains: bool, settings: Settings) -> dict[str, Any]:
    """A drain ends by itself. One that hangs is ended, so that the next one works on; a run that stays on has no end."""
    if not drains:
        return code
    arguments = {**code.get("Arguments", {}), "--drain": "true"}
    return {**code, "Arguments": arguments, "Timeout": settings.drain_minutes_at_most}


def tell(settings: Settings, stays: Sequence[str], sns: Any) -> None:
    text = f"The deployed code fails at once: {settings.job} runs with the earlier code. Fix the code and deploy it."
    if stays:
        text += f"\nThese keep the deployed values, because no run can choose them: {', '.join(stays)}."
    send_message(sns, settings.alarm_topic, f"forebay: {settings.job} went back", text)
