"""Runs that a schedule wanted and that could not start, such as while another run of the job was at work: one small object
each, until they can.

A run whose job the stack no longer has is dropped, with a line in the log. The same request twice is one. If the object of a
started run cannot be removed, the run starts twice, which upkeep allows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from typing import Any

from botocore.exceptions import ClientError

from lambdas.log import log

PREFIX = "waiting-runs/"
"""In the artefacts bucket."""


def keep(s3: Any, bucket: str, request: dict[str, Any]) -> None:
    body = json.dumps(request, sort_keys=True).encode()
    key = f"{PREFIX}{request['JobName']}/{hashlib.sha256(body).hexdigest()[:16]}.json"
    s3.put_object(Bucket=bucket, Key=key, Body=body)


def start_waiting(s3: Any, bucket: str, jobs: Any, ours: Collection[str]) -> list[str]:
    """One of each job at most. Leaves the names of the jobs that were started. A run that AWS refuses keeps waiting, and the
    first refusal is raised after the others have started.

    `ours` are the jobs of the stack, and they alone decide what is dropped. AWS says of a job that a deployment removed only
    that the function may not start it, and does not know one that a deployment is about to make."""
    started: list[str] = []
    refusals: list[Exception] = []
    for key in _keys(s3, bucket):
        request = json.loads(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
        if request["JobName"] in started:
            continue
        try:
            if request["JobName"] in ours:
                jobs.start_job_run(**request)
                started.append(request["JobName"])
            else:
                about = {"job": request["JobName"], "arguments": request["Arguments"]}
                log("a waiting run is dropped: the stack no longer has its job", **about)
        except jobs.exceptions.ConcurrentRunsExceededException:
            continue
        except (ClientError, jobs.exceptions.EntityNotFoundException) as refused:
            refusals.append(refused)
            continue
        s3.delete_object(Bucket=bucket, Key=key)
    if refusals:
        raise refusals[0]
    return started


def _keys(s3: Any, bucket: str) -> Iterator[str]:
    """Without the empty objects that S3's console makes for folders."""
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=PREFIX):
        yield from (one["Key"] for one in page.get("Contents", []) if one["Key"].endswith(".json"))
