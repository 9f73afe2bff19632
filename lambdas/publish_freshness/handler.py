"""Enters: a schedule's tick. Leaves: `FreshnessMeasured`, to the log and to CloudWatch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import boto3

from forebay.cloudwatch import CloudWatch
from forebay.events import to_log
from lambdas import environment
from lambdas.publish_freshness.events import FreshnessMeasured
from lambdas.publish_freshness.ledger_log import newest_commit

WAITING, HELD = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"


@dataclass(frozen=True)
class Settings:
    service: str
    namespace: str
    queue_url: str
    dead_urls: str
    lake_bucket: str


def handle(event: dict[str, Any], context: object) -> None:
    settings = environment.read(Settings, os.environ)
    metrics = CloudWatch(boto3.client("cloudwatch"), namespace=settings.namespace)
    measured = measure(settings, sqs=boto3.client("sqs"), s3=boto3.client("s3"), now=datetime.now(UTC))
    to_log()(measured)
    metrics(measured)
    metrics.flush()


def measure(settings: Settings, *, sqs: Any, s3: Any, now: datetime) -> FreshnessMeasured:
    waiting, held = counts(sqs, settings.queue_url)
    dead = sum(sum(counts(sqs, url)) for url in settings.dead_urls.split(","))
    batch = newest_commit(s3, settings.lake_bucket)
    age = None if batch is None else max(0.0, (now - batch).total_seconds())
    return FreshnessMeasured(service=settings.service, waiting=waiting, held=held, dead=dead, since_batch_seconds=age)


def counts(sqs: Any, url: str) -> tuple[int, int]:
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[WAITING, HELD])["Attributes"]
    return int(found[WAITING]), int(found[HELD])
