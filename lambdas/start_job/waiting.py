"""Runs that a schedule wanted while another run of the job was at work: one small object each, until they can start.

The same request twice is one. If the object of a started run cannot be removed, the run starts twice, which upkeep allows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

__all__ = ["PREFIX", "keep", "start_waiting"]

PREFIX = "waiting-runs/"
"""In the artefacts bucket."""


def keep(s3: Any, bucket: str, request: dict[str, Any]) -> None:
    body = json.dumps(request, sort_keys=True).encode()
    key = f"{PREFIX}{request['JobName']}/{hashlib.sha256(body).hexdigest()[:16]}.json"
    s3.put_object(Bucket=bucket, Key=key, Body=body)


def start_waiting(s3: Any, bucket: str, jobs: Any) -> list[str]:
    """One of each job at most. Leaves the names of the jobs that were started. A run that AWS refuses keeps waiting, and the
    first refusal is raised after the others have started."""
    started: list[str] = []
    refusals: list[ClientError] = []
    for key in _keys(s3, bucket):
        request = json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
        if request["JobName"] in started:
            continue
        try:
            jobs.start_job_run(**request)
        except jobs.exceptions.ConcurrentRunsExceededException:
            continue
        except ClientError as refused:
            refusals.append(refused)
            continue
        started.append(request["JobName"])
        s3.delete_object(Bucket=bucket, Key=key)
    if refusals:
        raise refusals[0]
    return started


def _keys(s3: Any, bucket: str) -> Iterator[str]:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=PREFIX):
        yield from (one["Key"] for one in page.get("Contents", []))
