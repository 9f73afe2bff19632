"""Measures how far the lake is behind: the queue's counts, the age of the ledger's last batch, and of the rows of tables
that somebody watches; and whether the KMS keys can be used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from forebay.lake.layout import HEALTH
from lambdas.places import place_of
from lambdas.publish_freshness.events import FreshnessMeasured, KeysChecked, TableFreshnessMeasured
from lambdas.publish_freshness.ledger_log import newest_commit

WAITING, HELD = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"


@dataclass(frozen=True)
class Settings:
    service: str
    namespace: str
    queue_url: str
    dead_urls: str
    lake: str
    ingest_job: str
    keys: str
    schedule_group: str
    schedules: str = ""
    watched_tables: str = ""
    engine: str = "glue"


def measure(settings: Settings, *, sqs: Any, s3: Any, now: datetime) -> FreshnessMeasured:
    waiting, held = counts(sqs, settings.queue_url)
    dead = sum(sum(counts(sqs, url)) for url in settings.dead_urls.split(","))
    batch = newest_commit(s3, settings.lake)
    age = None if batch is None else max(0.0, (now - batch).total_seconds())
    return FreshnessMeasured(service=settings.service, waiting=waiting, held=held, dead=dead, since_batch_seconds=age)


def of_tables(settings: Settings, *, s3: Any, now: datetime) -> Iterator[TableFreshnessMeasured]:
    """The measures of tables. A table that never got rows has none."""
    for table in filter(None, settings.watched_tables.split(",")):
        if at := _newest_rows(s3, settings.lake, table):
            age = max(0.0, (now - at).total_seconds())
            yield TableFreshnessMeasured(service=settings.service, table=table, since_rows_seconds=age)


def _newest_rows(s3: Any, lake: str, table: str) -> datetime | None:
    """When a table got its last rows, from its health object, which ingest writes as rows arrive."""
    try:
        health = json.load(s3.get_object(**place_of(lake, f"{HEALTH}/{table}.json"))["Body"])
    except s3.exceptions.NoSuchKey:
        return None
    at = health.get("newest_at")
    return datetime.fromisoformat(at) if at else None


def check_keys(service: str, arns: list[str], kms: Any) -> KeysChecked:
    """Where a key cannot be used, nothing else here may be measured, and few other messages arrive."""
    states = {arn: str(kms.describe_key(KeyId=arn)["KeyMetadata"]["KeyState"]) for arn in arns}
    bad = [f"{arn} is {state}" for arn, state in states.items() if state != "Enabled"]
    return KeysChecked(service=service, unusable=len(bad), which=", ".join(bad) or None)


def counts(sqs: Any, url: str) -> tuple[int, int]:
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[WAITING, HELD])["Attributes"]
    return int(found[WAITING]), int(found[HELD])
