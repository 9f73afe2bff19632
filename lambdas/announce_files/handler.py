"""In: which files to announce again: `{"prefix": "in/2026/", "since": ..., "until": ..., "after": ...}` (of each key its
present version), `{"keys": [...]}`, or `{"manifest": "s3://bucket/key"}` with a key a line; `"bucket"` where there are
several. Out: notices as S3 writes them, in the queue. The answer says how many files were announced and which keys are
missing. If time ran out, `after` says where the next call continues. Announcing what is loaded already is harmless: the ledger
knows it. Notices that the queue refuses three times are an error that names them, after all others were sent."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import boto3

from forebay.aws.announce import announce as send
from forebay.counted import counted
from forebay.errors import TryAgain
from lambdas import environment
from lambdas.announce_files.listing import asked_for, bucket_of
from lambdas.log import log

SPARE_MS = 30_000


@dataclass(frozen=True)
class Settings:
    landing_buckets: str
    queue_url: str
    landing_prefix: str = ""


def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    settings = environment.read(Settings, os.environ)
    left_ms: Callable[[], int] = context.get_remaining_time_in_millis
    clients = {name: boto3.client(name) for name in ("s3", "sqs")}
    done = announce(event, settings, **clients, time_left=lambda: left_ms() > SPARE_MS)
    log("announced", **done)
    return done


def announce(
    event: dict[str, Any], settings: Settings, *, s3: Any, sqs: Any, time_left: Callable[[], bool]
) -> dict[str, Any]:
    announced, missing, refused, after = 0, [], [], None
    bucket = bucket_of(event, settings.landing_buckets.split(","))
    for page in asked_for(event, bucket, settings.landing_prefix, s3):
        failed = send(sqs, settings.queue_url, page.files)
        announced += len(page.files) - len(failed)
        refused += failed
        missing += page.missing
        if page.last and not time_left():
            after = page.last
            break
    if refused:
        raise TryAgain(
            f"{counted(announced, 'file', 'was')} announced; the queue refused {len(refused):,}, such as {refused[0]}"
        )
    return {"announced": announced, "missing": missing, "after": after}
