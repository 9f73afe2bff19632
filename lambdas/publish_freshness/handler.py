"""Enters: a schedule's tick. Leaves: `FreshnessMeasured`, and `TableFreshnessMeasured` for each watched table; or, of the tick
`{"trend": true}`, `TrendMeasured`. To the log and to CloudWatch."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import boto3

from forebay.aws.cloudwatch import CloudWatch
from forebay.events import Journal, to_log
from lambdas import environment
from lambdas.publish_freshness.measuring import Settings, measure, of_tables
from lambdas.publish_freshness.trend import trend


def handle(event: dict[str, Any], context: object) -> None:
    settings, now = environment.read(Settings, os.environ), datetime.now(UTC)
    cloudwatch, s3 = boto3.client("cloudwatch"), boto3.client("s3")
    emit = Journal(to_log(), metrics := CloudWatch(cloudwatch, namespace=settings.namespace))
    if event.get("trend"):
        where = {"namespace": settings.namespace, "service": settings.service, "job": settings.ingest_job}
        emit(trend(cloudwatch, **where, now=now))
    else:
        emit(measure(settings, sqs=boto3.client("sqs"), s3=s3, now=now))
        for measured in of_tables(settings, s3=s3, now=now):
            emit(measured)
    metrics.flush()
