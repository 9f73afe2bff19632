"""What the page is made of: queues, tables, runs and alarms, as they are now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lambdas.plan_compaction.health_objects import health_objects
from lambdas.publish_freshness.ledger_log import newest_commit
from lambdas.publish_freshness.measuring import counts
from lambdas.status_page.page import Alarm, Run, State, Table

__all__ = ["Settings", "in_state", "state"]

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


def state(settings: Settings, *, s3: Any, sqs: Any, glue: Any, cloudwatch: Any, now: datetime) -> State:
    waiting, held = counts(sqs, settings.queue_url)
    dead = sum(sum(counts(sqs, url)) for url in settings.dead_urls.split(","))
    found = [(job, glue.get_job_runs(JobName=job, MaxResults=RUNS_EACH)["JobRuns"]) for job in settings.jobs.split(",")]
    runs = [Run.of(job, run, now) for job, of_job in found for run in of_job]
    tables = [Table.of(health) for health in health_objects(s3, settings.lake_bucket)]
    batch = newest_commit(s3, settings.lake_bucket)
    alarms = in_state("ALARM", settings.name, cloudwatch)
    without_data = len(in_state("INSUFFICIENT_DATA", settings.name, cloudwatch))
    return State(settings.name, now, waiting, held, dead, batch, tuple(tables), tuple(runs), alarms, without_data)


def in_state(value: str, name: str, cloudwatch: Any) -> tuple[Alarm, ...]:
    """Those that call a person; what wakes a function is no trouble."""
    asked = {"AlarmNamePrefix": f"{name}-", "StateValue": value}
    found = [
        one for page in cloudwatch.get_paginator("describe_alarms").paginate(**asked) for one in page["MetricAlarms"]
    ]
    calling = [Alarm.of(one) for one in found if any(":sns:" in action for action in one.get("AlarmActions", ()))]
    return tuple(sorted(calling, key=lambda alarm: alarm.name))
