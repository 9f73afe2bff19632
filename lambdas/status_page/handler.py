"""Enters: a schedule's tick. Leaves: `status/index.html`, a page that needs nothing else, in the artefacts bucket, which is
private: whoever may read there, or is given a signed address, sees what waits, how the tables are, how the last runs ended
and which alarms ring. Nothing here decides anything; a page that is old says so by its time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import boto3
from aws_lambda_powertools import Logger

from lambdas import environment
from lambdas.engine.jobs import jobs_of
from lambdas.plan_compaction.health_objects import health_objects
from lambdas.publish_freshness.ledger_log import newest_commit
from lambdas.publish_freshness.measuring import counts
from lambdas.status_page.page import Run, State, Table, page

log = Logger(service="status_page")
KEY = "status/index.html"
RUNS_EACH = 5


@dataclass(frozen=True)
class Settings:
    name: str
    queue_url: str
    dead_urls: str
    lake_bucket: str
    page_bucket: str
    jobs: str
    engine: str = "glue"


def handle(event: dict[str, Any], context: object) -> str:
    settings = environment.read(Settings, os.environ)
    clients = {name: boto3.client(name) for name in ("s3", "sqs", "cloudwatch")}
    text = page(state(settings, glue=jobs_of(settings.engine), **clients, now=datetime.now(UTC)))
    about = {"ContentType": "text/html; charset=utf-8", "CacheControl": "no-store"}
    clients["s3"].put_object(Bucket=settings.page_bucket, Key=KEY, Body=text.encode(), **about)
    log.info("written", bytes=len(text))
    return f"s3://{settings.page_bucket}/{KEY}"


def state(settings: Settings, *, s3: Any, sqs: Any, glue: Any, cloudwatch: Any, now: datetime) -> State:
    waiting, held = counts(sqs, settings.queue_url)
    dead = sum(sum(counts(sqs, url)) for url in settings.dead_urls.split(","))
    found = [(job, glue.get_job_runs(JobName=job, MaxResults=RUNS_EACH)["JobRuns"]) for job in settings.jobs.split(",")]
    runs = [Run.of(job, run, now) for job, of_job in found for run in of_job]
    pages = cloudwatch.get_paginator("describe_alarms").paginate(
        AlarmNamePrefix=f"{settings.name}-", StateValue="ALARM"
    )
    alarms = sorted(one["AlarmName"] for one in [a for page in pages for a in page["MetricAlarms"]])
    tables = [Table.of(health) for health in health_objects(s3, settings.lake_bucket)]
    batch = newest_commit(s3, settings.lake_bucket)
    return State(settings.name, now, waiting, held, dead, batch, tuple(tables), tuple(runs), tuple(alarms))
