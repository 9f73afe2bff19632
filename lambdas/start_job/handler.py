"""Enters: a schedule's tick, or a person's wish: `{"JobName": ..., "Arguments": {...}}`, as Glue would be asked. Leaves: a run
of that job on EMR Serverless, or a sentence that says that it runs already."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger

from lambdas import environment
from lambdas.engine.jobs import jobs_of

log = Logger(service="start_job")


@dataclass(frozen=True)
class Settings:
    engine: str


def handle(event: dict[str, Any], context: object) -> str:
    done = start(event, jobs_of(environment.read(Settings, os.environ).engine))
    log.info(done, job=event["JobName"])
    return done


def start(event: dict[str, Any], jobs: Any) -> str:
    try:
        started = jobs.start_job_run(JobName=event["JobName"], Arguments=event.get("Arguments") or {})
    except jobs.exceptions.ConcurrentRunsExceededException:
        return "it runs already"
    return f"started {started['JobRunId']}"
