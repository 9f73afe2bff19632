"""In: the request of a schedule or a person, `{"JobName": ..., "Arguments": {...}}`, as for Glue's API; or the tick
`{"waiting": true}`. Out: a run of that job. If one is at work already, or AWS refuses one, a request with `"Wait": true` is
kept, and the next tick retries it: so a weekly run is late, and not left out."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import ClientError

from lambdas import environment
from lambdas.engine.jobs import jobs_of
from lambdas.log import log
from lambdas.start_job.waiting import keep, start_waiting


@dataclass(frozen=True)
class Settings:
    artefacts: str
    jobs: str
    engine: str = "glue"


def handle(event: dict[str, Any], context: object) -> str:
    settings = environment.read(Settings, os.environ)
    where = {"s3": boto3.client("s3"), "artefacts": settings.artefacts}
    done = start(event, jobs_of(settings.engine), ours=settings.jobs.split(","), **where)
    log(done, job=event.get("JobName"))
    return done


def start(event: dict[str, Any], jobs: Any, *, s3: Any, artefacts: str, ours: Collection[str]) -> str:
    if event.get("waiting"):
        started = start_waiting(s3, artefacts, jobs, ours)
        return f"started {', '.join(started)}" if started else "no waiting run can start"
    request = {"JobName": event["JobName"], "Arguments": event.get("Arguments") or {}}
    try:
        return f"started {jobs.start_job_run(**request)['JobRunId']}"
    except jobs.exceptions.ConcurrentRunsExceededException:
        if not event.get("Wait"):
            return "it is already running"
        why = "it is already running: this run waits until that one has ended"
    except (ClientError, jobs.exceptions.EntityNotFoundException) as refused:
        if not event.get("Wait"):
            raise
        why = f"AWS refuses it, so this run waits: {refused}"
    keep(s3, artefacts, request)
    return why
