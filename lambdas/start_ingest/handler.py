"""Enters: a schedule's tick, or the alarm that many messages wait. Leaves: a run of the ingest job, unless one is there, or
nothing waits (drain mode), or a person stopped the last one, or it failed so recently that we wait first. Run twice at once
it starts one: the job allows no second run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import boto3
from aws_lambda_powertools import Logger

from lambdas import environment
from lambdas.start_ingest.why_not import why_not

log = Logger(service="start_ingest")


@dataclass(frozen=True)
class Settings:
    job: str
    queue_url: str
    mode: str


def handle(event: dict[str, Any], context: object) -> str:
    settings = environment.read(Settings, os.environ)
    done = start(settings, glue=boto3.client("glue"), sqs=boto3.client("sqs"), now=datetime.now(UTC))
    log.info(done, job=settings.job)
    return done


def start(settings: Settings, *, glue: Any, sqs: Any, now: datetime) -> str:
    if reason := why_not(glue.get_job_runs(JobName=settings.job, MaxResults=10)["JobRuns"], now):
        return reason
    drain = settings.mode == "drain"
    if drain and not waiting(sqs, settings.queue_url):
        return "nothing waits"
    try:
        glue.start_job_run(JobName=settings.job, **({"Arguments": {"--drain": "true"}} if drain else {}))
    except glue.exceptions.ConcurrentRunsExceededException:
        return "it runs already"
    return "started"


def waiting(sqs: Any, queue_url: str) -> int:
    found = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["ApproximateNumberOfMessages"])
    return int(found["Attributes"]["ApproximateNumberOfMessages"])
