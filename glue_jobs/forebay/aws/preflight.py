"""Can this work at all? Asked once at the start, so that a wrong name or expired credentials are one line, not a stack
trace.

In: what the settings name. Out: nothing, or `Misdeclared` with the thing, the reason and what to do.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError, NoCredentialsError, NoRegionError

from forebay.aws.client import client
from forebay.errors import Misdeclared

__all__ = ["check_lake", "check_queue"]

_QUICK = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 3, "mode": "standard"})

_ADVICE = {
    "ExpiredToken": "the credentials have expired: sign in again",
    "ExpiredTokenException": "the credentials have expired: sign in again",
    "InvalidClientTokenId": "the credentials are not known there: check AWS_ACCESS_KEY_ID or AWS_PROFILE",
    "SignatureDoesNotMatch": "the secret key is wrong: check AWS_SECRET_ACCESS_KEY or AWS_PROFILE",
    "AccessDenied": "the role or user may not use it: see the policies in infra/",
    "403": "the role or user may not use it, or it belongs to another account",
}


def check_queue(url: str, *, sqs: Any = None) -> None:
    where = f"queue {url}"
    if not urlsplit(url).scheme.startswith("http"):
        raise Misdeclared.one(where, "is not a URL", "the queue's URL begins with https://sqs.<region>.amazonaws.com/")
    try:
        sqs = sqs or client("sqs", config=_QUICK)
        sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
    except (ClientError, BotoCoreError) as refused:
        missing = {
            "AWS.SimpleQueueService.NonExistentQueue": "there is no such queue: check the URL's region, account and name",
            "QueueDoesNotExist": "there is no such queue: check the URL's region, account and name",
        }
        raise _plainly(where, refused, missing, "AWS_ENDPOINT_URL_SQS") from refused


def check_lake(lake: str, *, s3: Any = None) -> None:
    scheme, _, rest = lake.partition("://")
    if scheme not in ("s3", "s3a"):
        return
    bucket = rest.partition("/")[0]
    try:
        s3 = s3 or client("s3", config=_QUICK)
        s3.head_bucket(Bucket=bucket)
    except (ClientError, BotoCoreError) as refused:
        missing = {"404": f"there is no bucket {bucket}: check its name and AWS_REGION"}
        raise _plainly(f"lake {lake}", refused, missing, "AWS_ENDPOINT_URL_S3") from refused


def _plainly(where: str, refused: Exception, missing: dict[str, str], endpoint: str) -> Misdeclared:
    if isinstance(refused, ClientError):
        error = refused.response.get("Error", {})
        code = str(error.get("Code", ""))
        advice = missing.get(code) or _ADVICE.get(code, "")
        return Misdeclared.one(where, f"cannot be used: {code} {error.get('Message', '')}".strip(), advice)
    if isinstance(refused, NoCredentialsError):
        return Misdeclared.one(where, "no AWS credentials were found", "set AWS_PROFILE, or run `aws sso login`")
    if isinstance(refused, NoRegionError):
        return Misdeclared.one(where, "no AWS region is set", "set AWS_REGION")
    if isinstance(refused, EndpointConnectionError):
        set_to = os.environ.get(endpoint) or os.environ.get("AWS_ENDPOINT_URL")
        advice = f"{endpoint} says {set_to}: does a server listen there?" if set_to else "is the network up?"
        return Misdeclared.one(where, "nobody answers", advice)
    return Misdeclared.one(where, f"cannot be used: {refused}")
