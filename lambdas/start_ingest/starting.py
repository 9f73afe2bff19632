"""A run of the ingest job, when the rules of `forebay.capacity` say so; none while one is at work, or after a person stopped
the last one. After a recent failure it waits first. A run that is older than the job's definition is asked to stop after its
batch. A later call then starts one with the deployed code. If that code fails at once, repeatedly, runs get the earlier
code, and a message is sent. Run twice at once it starts one: the job allows no second run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from forebay.capacity.rules import RUNS_LISTED, Rules
from lambdas.messages import send_message
from lambdas.places import place_of
from lambdas.publish_freshness.ledger_log import batch_since
from lambdas.publish_freshness.measuring import counts
from lambdas.start_ingest.last_good import code_for
from lambdas.start_ingest.looking import look, note_warned
from lambdas.start_ingest.why_not import why_not


@dataclass(frozen=True)
class Settings:
    job: str
    queue_url: str
    checkpoint: str
    lake: str
    alarm_topic: str
    engine: str = "glue"
    freshness_s: int = 600
    share_per_mille: int = 1000
    drain_minutes_at_most: int = 90


def start(settings: Settings, *, glue: Any, sqs: Any, s3: Any, sns: Any, now: datetime) -> str:
    runs = glue.get_job_runs(JobName=settings.job, MaxResults=RUNS_LISTED)["JobRuns"]
    job = glue.get_job(JobName=settings.job)["Job"]
    if outdated(runs, job):
        ask_to_stop(s3, settings.checkpoint)
        return "the job changed since its run began: the run was asked to stop after its batch"
    code = code_for(
        runs, job, s3=s3, checkpoint=settings.checkpoint, batch_since=partial(batch_since, s3, settings.lake)
    )
    waiting, _ = counts(sqs, settings.queue_url)
    rules = Rules(settings.freshness_s, settings.share_per_mille / 1000)
    blocked = why_not(runs, now)
    seen, note = look(rules, runs, waiting, s3=s3, checkpoint=settings.checkpoint, now=now)
    if blocked and not seen.staying:
        return blocked
    decision = rules.decide(seen)
    if decision.does == "end":
        ask_to_stop(s3, settings.checkpoint)
        return f"{decision.why}: the run was asked to stop after its batch"
    if decision.does == "wait":
        if decision.gives_way and not note.is_warned(now.timestamp()):
            tell_of_budget(settings, sns)
            note_warned(note, s3, settings.checkpoint, now)
        return decision.why
    try:
        glue.start_job_run(JobName=settings.job, **asked_for(code.request, decision.cap_s, settings))
    except glue.exceptions.ConcurrentRunsExceededException:
        return "it is already running"
    if code.is_first:
        tell(settings, code.stays, sns)
    started = "started" if decision.cap_s else "started, to keep running"
    return started + (" with the earlier code" if code.request else "")


def outdated(runs: Sequence[dict[str, Any]], job: dict[str, Any]) -> bool:
    """Whether a run still has a definition that a deployment has replaced. A run keeps the definition of its start."""
    return any(run["JobRunState"] == "RUNNING" and run["StartedOn"] < job["LastModifiedOn"] for run in runs)


def ask_to_stop(s3: Any, checkpoint: str) -> None:
    """As `forebay stop` does: the job looks for this object, and removes it when it ends."""
    s3.put_object(**place_of(checkpoint, "stop"), Body=b"")


def asked_for(code: dict[str, Any], cap_s: int, settings: Settings) -> dict[str, Any]:
    """A drain ends by itself. One that hangs is ended, so that the next one works on; a run that stays on has no end."""
    if not cap_s:
        return code
    arguments = {**code.get("Arguments", {}), "--drain": "true", "--drain_cap_s": str(cap_s)}
    return {**code, "Arguments": arguments, "Timeout": settings.drain_minutes_at_most}


def tell(settings: Settings, stays: Sequence[str], sns: Any) -> None:
    text = f"The deployed code fails at once: {settings.job} runs with the earlier code. Fix the code and deploy it."
    if stays:
        text += f"\nThese keep the deployed values, because no run can choose them: {', '.join(stays)}."
    send_message(sns, settings.alarm_topic, f"forebay: {settings.job} went back", text)


def tell_of_budget(settings: Settings, sns: Any) -> None:
    text = (
        f"The budget delays {settings.job}, and files wait for longer than the freshness. No run starts until runs have "
        "used less of the last 24 hours. If that happens often, raise budget_usd_month or freshness. "
        "This message comes once a day."
    )
    send_message(sns, settings.alarm_topic, f"forebay: the budget delays {settings.job}", text)
