"""In: a schedule's tick. Out: the decision of `starting`: a run of the ingest job, a request that one ends, or nothing; and a
sentence that says which."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any

import boto3

from lambdas import environment
from lambdas.engine.jobs import jobs_of
from lambdas.log import log
from lambdas.start_ingest.starting import Settings, start


def handle(event: dict[str, Any], context: object) -> str:
    settings = environment.read(Settings, os.environ)
    clients = {name: boto3.client(name) for name in ("sqs", "s3", "sns")}
    done = start(settings, glue=jobs_of(settings.engine), **clients, now=datetime.now(UTC))
    log(done, job=settings.job)
    return done
