"""In: a schedule's tick. Out: `KeysChecked`, `FreshnessMeasured`, `TableFreshnessMeasured` for each watched table, and
`SchedulesChecked`; or, of the tick `{"trend": true}`, `TrendMeasured`. To the log and to CloudWatch. A measured value is
published even if a later step fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3

from forebay.aws.cloudwatch import CloudWatch
from forebay.events import Event, Journal, to_log
from lambdas import environment
from lambdas.engine.jobs import GLUE, jobs_of
from lambdas.publish_freshness.measuring import Settings, check_keys, measure, of_tables
from lambdas.publish_freshness.overdue import check_schedules
from lambdas.publish_freshness.trend import trend


def handle(event: dict[str, Any], context: object) -> None:
    settings, now = environment.read(Settings, os.environ), datetime.now(UTC)
    cloudwatch = boto3.client("cloudwatch")
    emit = Journal(to_log(), metrics := CloudWatch(cloudwatch, namespace=settings.namespace))
    try:
        if event.get("trend"):
            where = {"namespace": settings.namespace, "service": settings.service, "job": settings.ingest_job}
            emit(trend(cloudwatch, **where, now=now))
        else:
            for measured in everything(settings, now):
                emit(measured)
    finally:
        metrics.flush()


def everything(settings: Settings, now: datetime) -> Iterator[Event]:
    """The keys first: without them there is nothing else to see."""
    s3 = boto3.client("s3")
    yield check_keys(settings.service, settings.keys.split(","), boto3.client("kms"))
    yield measure(settings, sqs=boto3.client("sqs"), s3=s3, now=now)
    yield from of_tables(settings, s3=s3, now=now)
    yield check_schedules(
        settings.service,
        settings.schedule_group,
        [name for name in settings.schedules.split(",") if name],
        scheduler=boto3.client("scheduler"),
        jobs=jobs_of(settings.engine),
        arguments_known=settings.engine == GLUE,
        now=now,
    )
