"""In: a schedule's tick. Out: a run of the compaction job with the names of the tables that need it, or nothing where none
does. It reads the small health objects that ingest and compaction keep. The job reads the tables themselves, so numbers that
lag cost one start at most. Tables that wait for the clock, because their group has hours of its own, are left alone. Run twice
at once it starts one: the job allows no second run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import boto3

from forebay.counted import counted
from lambdas import environment
from lambdas.engine.jobs import jobs_of
from lambdas.log import log
from lambdas.plan_compaction.health_objects import health_objects
from lambdas.plan_compaction.why import FIELDS, waits, why

MOST_NAMES = 500
"""With more tables, the run gets no names: the job plans all tables and finds them."""


@dataclass(frozen=True)
class Settings:
    job: str
    lake: str
    tables_that_wait: str = ""
    engine: str = "glue"


def handle(event: dict[str, Any], context: object) -> str:
    settings = environment.read(Settings, os.environ)
    done = start(settings, s3=boto3.client("s3"), glue=jobs_of(settings.engine), now=datetime.now(UTC))
    log(done, job=settings.job)
    return done


def start(settings: Settings, *, s3: Any, glue: Any, now: datetime) -> str:
    known = (one for one in health_objects(s3, settings.lake) if one.keys() >= FIELDS)
    tables = [one for one in known if not waits(one["table"], settings.tables_that_wait)]
    reasons = {one["table"]: reason for one in tables if (reason := why(one, now))}
    if not reasons:
        return "no table needs compaction"
    names = sorted(reasons) if len(reasons) <= MOST_NAMES else []
    log("in need", tables=dict(sorted(reasons.items())[:MOST_NAMES]))
    try:
        glue.start_job_run(JobName=settings.job, Arguments={"--tables": ",".join(names)} if names else {})
    except glue.exceptions.ConcurrentRunsExceededException:
        return "it is already running"
    return f"started for {counted(len(reasons), 'table')}"
