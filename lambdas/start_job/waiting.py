"""Runs that a schedule wanted while another run of the job was at work: one small object each, until they can start.

A run whose job no longer exists is dropped, with a line in the log. The same request twice is one. If the object of a
started run cannot be removed, the run starts twice, which upkeep allows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from typing import Any

from botocore.exceptions import ClientError

from lambdas.log import log

__all__ = ["PREFIX", "keep", "start_waiting"]

PREFIX = "waiting-runs/"
"""In the artefacts bucket."""


def keep(s3: Any, bucket: str, request: dict[str, Any]) -> None:
    body = json.dumps(request, sort_keys=True).encode()
    key = f"{PREFIX}{request['JobName']}/{hashlib.sha256(body).hexdigest()[:16]}.json"
    s3.put_object(Bucket=bucket, Key=key, Body=body)


def start_waiting(s3: Any, bucket: str, jobs: Any, ours: Collection[str]) -> list[str]:
    """One of each job at most. Leaves the names of the jobs that were started. A run that AWS refuses keeps waiting, and the
    first refusal is raised after the others have started.

    `ours` are the jobs of the stack. AWS says of one that a deployment removed only that the function may not start it."""
    started: list[str] = []
    refusals: list[ClientError] = []
    for key in _keys(s3, bucket):
        request = json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
        if request["JobName"] in started:
            continue
        try:
            if request["JobName"] in ours:
                jobs.start_job_run(**request)
                started.append(request["JobName"])
            else:
                _say_dropped(request)
        except jobs.exceptions.ConcurrentRunsExceededException:
            continue
        except jobs.exceptions.EntityNotFoundException:
            _say_dropped(request)
        except ClientError as refused:
            refusals.append(refused)
            continue
        s3.delete_object(Bucket=bucket, Key=key)
    if refusals:
        raise refusals[0]
    return started


def _say_dropped(request: dict[str, Any]) -> None:
    log("a waiting run is dropped: its job no longer exists", job=request["JobName"], arguments=request["Arguments"])


def _keys(s3: Any, bucket: str) -> Iterator[str]:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=PREFIX):
        yield from (one["Key"] for one in page.get("Contents", []))
