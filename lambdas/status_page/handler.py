"""In: a schedule's tick. Out: `status/index.html` in the artefacts bucket, which is private. Readers of that bucket, or of a
signed address, see the page of `forebay report`, made from AWS's data without reading the tables. The page needs nothing else,
and shows its time."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import boto3

from forebay.operate.page.rendering import render
from lambdas import environment
from lambdas.engine.jobs import jobs_of
from lambdas.log import log
from lambdas.status_page.looking import Settings, page_of

KEY = "status/index.html"


def handle(event: dict[str, Any], context: object) -> str:
    settings = environment.read(Settings, os.environ)
    clients = {name: boto3.client(name) for name in ("s3", "sqs", "cloudwatch")}
    text = render(page_of(settings, glue=jobs_of(settings.engine), **clients, now=datetime.now(UTC)))
    about = {"ContentType": "text/html; charset=utf-8", "CacheControl": "no-store"}
    clients["s3"].put_object(Bucket=settings.page_bucket, Key=KEY, Body=text.encode(), **about)
    log("written", bytes=len(text))
    return f"s3://{settings.page_bucket}/{KEY}"
