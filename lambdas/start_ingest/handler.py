"""Enters: a schedule's tick, or the alarm that many messages wait. Leaves: a run of the ingest job, unless one is there, or
nothing waits (drain mode), or a person stopped the last one, or it failed so recently that we wait first. A run that is older
than the job's definition is asked to stop after its batch, so that the next look starts one with what was deployed. Run
twice at once it starts one: the job allows no second run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import boto3
from aws_lambda_powertools import Logger

from lambdas import environment
from lambdas.publish_freshness.handler import counts
from lambdas.start_ingest.ending import ask_to_stop, idle, outdated
from lambdas.start_ingest.stay_on import busy_percent
from lambdas.start_ingest.why_not import why_not

log = Logger(service="start_ingest")


@dataclass(frozen=True)
class Settings:
    job: str
    queue_url: str
    mode: str
    checkpoint: str
    lake_bucket: str
    stay_on_at_percent: int = 50
    leave_after_minutes: int = 30


def handle(event: dict[str, Any], context: object) -> str:
    settings = environment.read(Settings, os.environ)
    done = start(settings, **{name: boto3.client(name) for name in ("glue", "sqs", "s3")}, now=datetime.now(UTC))
    log.info(done, job=settings.job)
    return done


def start(settings: Settings, *, glue: Any, sqs: Any, s3: Any, now: datetime) -> str:
    runs = glue.get_job_runs(JobName=settings.job, MaxResults=50)["JobRuns"]
    if outdated(runs, glue.get_job(JobName=settings.job)["Job"]):
        ask_to_stop(s3, settings.checkpoint)
        return "the job changed since its run began: the run was asked to stop after its batch"
    waiting, held = counts(sqs, settings.queue_url)
    quiet = settings.mode == "auto" and not waiting + held
    if quiet and idle(runs, s3, settings.lake_bucket, now=now, minutes=settings.leave_after_minutes):
        ask_to_stop(s3, settings.checkpoint)
        return "nothing comes: the run that stayed on was asked to stop"
    if reason := why_not(runs, now):
        return reason
    if settings.mode != "continuous" and not waiting:
        return "nothing waits"
    stays = settings.mode == "auto" and busy_percent(runs, now) >= settings.stay_on_at_percent
    drain = settings.mode != "continuous" and not stays
    try:
        glue.start_job_run(JobName=settings.job, **({"Arguments": {"--drain": "true"}} if drain else {}))
    except glue.exceptions.ConcurrentRunsExceededException:
        return "it runs already"
    return "started, to stay on" if stays else "started"
