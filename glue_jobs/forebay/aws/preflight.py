"""Checks at the start whether this can work at all, so that a wrong name or expired credentials give one line, not a stack
trace.

In: names from the settings. Out: nothing, or an error that names the thing, the reason and what to do. `InvalidConfiguration`
means a wrong name. `Unreachable` means that AWS does not answer or denies access.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    ProfileNotFound,
)

from forebay.address import bucket_and_key, is_s3
from forebay.aws.client import client, queue_client
from forebay.errors import InvalidConfiguration, Unreachable

CLOCKS_DIFFER = timedelta(minutes=15)
"""S3 refuses signatures that are further from its own clock. But clients of AWS correct theirs, and try again."""

_QUICK = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 3, "mode": "standard"})

_ADVICE = {
    "ExpiredToken": "the credentials have expired: sign in again",
    "ExpiredTokenException": "the credentials have expired: sign in again",
    "InvalidClientTokenId": "AWS does not know the credentials: check AWS_ACCESS_KEY_ID or AWS_PROFILE",
    "SignatureDoesNotMatch": "the secret key is wrong: check AWS_SECRET_ACCESS_KEY or AWS_PROFILE",
    "AccessDenied": "the role or user may not use it: see the policies in infra/",
    "403": "the role or user may not use it, or it belongs to another account",
}


def check_queue(url: str, *, sqs: Any = None) -> None:
    where = f"queue {url}"
    if not urlsplit(url).scheme.startswith("http"):
        raise InvalidConfiguration.one(
            where, "is not a URL", "a queue URL begins with https://sqs.<region>.amazonaws.com/"
        )
    try:
        sqs = sqs or queue_client(url, config=_QUICK)
        sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
    except (ClientError, BotoCoreError) as refused:
        missing = {
            "AWS.SimpleQueueService.NonExistentQueue": "there is no such queue: check the URL's region, account and name",
            "QueueDoesNotExist": "there is no such queue: check the URL's region, account and name",
        }
        raise plainly(where, refused, missing, "AWS_ENDPOINT_URL_SQS") from refused


def check_lake(lake: str, *, s3: Any = None) -> Mapping[str, str]:
    """Returns the headers of S3's answer; a folder has none."""
    return check_bucket(lake, s3=s3, what="lake") if is_s3(lake) else {}


def check_lake_and_clock(lake: str, now: datetime, *, s3: Any = None) -> None:
    """For what deletes by time: a clock that is a year ahead would expire the rows of a year."""
    at = _time_of(check_lake(lake, s3=s3))
    if at is not None and abs(at - now) > CLOCKS_DIFFER:
        raise InvalidConfiguration.one(
            "the clock of this machine",
            f"says {now:%Y-%m-%d %H:%M} UTC, and S3's says {at:%Y-%m-%d %H:%M}: the age of rows and files is unknown",
            "set the clock, then start again",
        )


def _time_of(headers: Mapping[str, str]) -> datetime | None:
    """S3 always says it. Another server may not, or without a time zone."""
    try:
        at = parsedate_to_datetime(headers.get("date", ""))
    except ValueError:
        return None
    return at if at.tzinfo else None


def check_bucket(place: str, *, what: str, s3: Any = None) -> Mapping[str, str]:
    """That of the place, whose keys may have any name. `what` is the word for the place in the error. Returns the answer's
    headers."""
    bucket, _ = bucket_and_key(place)
    try:
        s3 = s3 or client("s3", config=_QUICK)
        answer: Mapping[str, Any] = s3.head_bucket(Bucket=bucket)
        headers: Mapping[str, str] = answer["ResponseMetadata"]["HTTPHeaders"]
        return headers
    except (ClientError, BotoCoreError) as refused:
        missing = {"404": f"there is no bucket {bucket}: check its name and AWS_REGION"}
        raise plainly(f"{what} {place}", refused, missing, "AWS_ENDPOINT_URL_S3") from refused


def plainly(where: str, refused: Exception, missing: Mapping[str, str], endpoint: str) -> InvalidConfiguration:
    """An error of boto3 as a sentence. `missing`: advice, by the AWS error codes that mean that the thing does not exist."""
    if isinstance(refused, ClientError):
        error = refused.response.get("Error", {})
        code = str(error.get("Code", ""))
        message = str(error.get("Message", "")).partition("<!doctype")[0]  # a proxy answers with a page
        problem = f"cannot be used: {code} {message}".strip()
        if code in missing:
            return InvalidConfiguration.one(where, problem, missing[code])
        return Unreachable.one(where, problem, _ADVICE.get(code, ""))
    if isinstance(refused, ProfileNotFound):
        return InvalidConfiguration.one(where, str(refused), "`aws configure list-profiles` lists the profiles")
    if isinstance(refused, NoCredentialsError):
        return Unreachable.one(where, "no AWS credentials were found", "set AWS_PROFILE, or run `aws sso login`")
    if isinstance(refused, NoRegionError):
        return InvalidConfiguration.one(where, "no AWS region is set", "set AWS_REGION")
    if isinstance(refused, EndpointConnectionError | HTTPClientError):
        name = endpoint if os.environ.get(endpoint) else "AWS_ENDPOINT_URL"
        set_to = os.environ.get(name)
        of_twin = "; if it was a twin, `forebay local up` starts another" if os.environ.get("FOREBAY_LOCAL") else ""
        advice = f"{name} is {set_to}: is a server listening there?{of_twin}" if set_to else "is the network up?"
        return Unreachable.one(where, "does not answer", advice)
    return Unreachable.one(where, f"cannot be used: {refused}")
