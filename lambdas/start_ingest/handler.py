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
from lambdas.start_ingest.why_not import outdated, why_not

log = Logger(service="start_ingest")


@dataclass(frozen=True)
class Settings:
    job: str
    queue_url: str
    mode: str
    checkpoint: str


def handle(event: dict[str, Any], context: object) -> str:
    settings = environment.read(Settings, os.environ)
    clients = {name: boto3.client(name) for name in ("glue", "sqs", "s3")}
    done = start(settings, **clients, now=datetime.now(UTC))
    log.info(done, job=settings.job)
    return done


def start(settings: Settings, *, glue: Any, sqs: Any, s3: Any, now: datetime) -> str:
    runs = glue.get_job_runs(JobName=settings.job, MaxResults=10)["JobRuns"]
    if outdated(runs, glue.get_job(JobName=settings.job)["Job"]):
        ask_to_stop(s3, settings.checkpoint)
        return "the job changed since its run began: the run was asked to stop after its batch"
    if reason := why_not(runs, now):
        return reason
    drain = settings.mode == "drain"
    if drain and not waiting(sqs, settings.queue_url):
        return "nothing waits"
    try:
        glue.start_job_run(JobName=settings.job, **({"Arguments": {"--drain": "true"}} if drain else {}))
    except glue.exceptions.ConcurrentRunsExceededException:
        return "it runs already"
    return "started"


def ask_to_stop(s3: Any, checkpoint: str) -> None:
    """As `forebay stop` does: the job looks for this object, and removes it when it ends."""
    bucket, _, folder = checkpoint.removeprefix("s3://").partition("/")
    s3.put_object(Bucket=bucket, Key=f"{folder}/stop", Body=b"")


def waiting(sqs: Any, queue_url: str) -> int:
    found = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["ApproximateNumberOfMessages"])
    return int(found["Attributes"]["ApproximateNumberOfMessages"])
