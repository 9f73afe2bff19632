"""Enters: a schedule's tick. Leaves: `FreshnessMeasured`, and `TableFreshnessMeasured` for each watched table; or, of the tick
`{"trend": true}`, `TrendMeasured`. To the log and to CloudWatch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import boto3

from forebay.cloudwatch import CloudWatch
from forebay.events import Journal, to_log
from lambdas import environment
from lambdas.publish_freshness.events import FreshnessMeasured, TableFreshnessMeasured
from lambdas.publish_freshness.ledger_log import newest_commit
from lambdas.publish_freshness.newest_rows import newest_rows
from lambdas.publish_freshness.trend import trend

WAITING, HELD = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"


@dataclass(frozen=True)
class Settings:
    service: str
    namespace: str
    queue_url: str
    dead_urls: str
    lake_bucket: str
    ingest_job: str
    watched_tables: str = ""


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


def measure(settings: Settings, *, sqs: Any, s3: Any, now: datetime) -> FreshnessMeasured:
    waiting, held = counts(sqs, settings.queue_url)
    dead = sum(sum(counts(sqs, url)) for url in settings.dead_urls.split(","))
    batch = newest_commit(s3, settings.lake_bucket)
    age = None if batch is None else max(0.0, (now - batch).total_seconds())
    return FreshnessMeasured(service=settings.service, waiting=waiting, held=held, dead=dead, since_batch_seconds=age)


def of_tables(settings: Settings, *, s3: Any, now: datetime) -> Iterator[TableFreshnessMeasured]:
    """Of a table that never got rows nothing is made up."""
    for table in filter(None, settings.watched_tables.split(",")):
        if at := newest_rows(s3, settings.lake_bucket, table):
            age = max(0.0, (now - at).total_seconds())
            yield TableFreshnessMeasured(service=settings.service, table=table, since_rows_seconds=age)


def counts(sqs: Any, url: str) -> tuple[int, int]:
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[WAITING, HELD])["Attributes"]
    return int(found[WAITING]), int(found[HELD])
