"""Sends one object the whole way: bucket, topic, queue, job, ledger; then removes it.

In: a deployment, and a way to read the ledger. Out: findings that say where it got stuck, or none. The object is one empty
line, so it leaves a row in the ledger, but none in any table. Each run has its own object. The lake's conditional PUT is tried
first, under `_forebay/probe`. A refusal by S3 is the answer; nothing is retried.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import uuid4

from botocore.exceptions import ClientError

from forebay.lake.layout import PROBES
from forebay.ledger.entry import IGNORED
from forebay.operate.doctor.finding import Finding, error, warning
from forebay.operate.doctor.jobs import newest_runs
from forebay.operate.looking.queue import depth_of
from forebay.operate.stack.deployment import Deployment

EVERY_S = 5.0
BODY = b"\n"
AT_WORK = ("STARTING", "RUNNING", "WAITING", "STOPPING")


@dataclass(frozen=True)
class Clock:
    now_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def conditional_put(on: Deployment) -> Iterator[Finding]:
    """The second of two PUTs with `If-None-Match` must be refused, and one without it, if the policy says so."""
    s3, key = on.client("s3"), on.key_in_lake(f"{PROBES}/doctor-{uuid4().hex}")
    place = {"Bucket": on.lake_bucket, "Key": key}
    s3.put_object(**place, Body=BODY, IfNoneMatch="*")
    try:
        if not _is_refused(lambda: s3.put_object(**place, Body=BODY, IfNoneMatch="*")):
            what = f"{on.lake_bucket} let a conditional PUT overwrite an object"
            why = "Two writers could both win the same commit, and rows would be lost."
            yield error(what, why, "keep the lake in Amazon S3 itself, not in an imitation")
    finally:
        s3.delete_object(**place)


def _is_refused(put: Callable[[], object]) -> bool:
    try:
        put()
    except ClientError as refused:
        return refused.response["ResponseMetadata"]["HTTPStatusCode"] in (409, 412)
    return False


def journey(
    on: Deployment, outcome_of: Callable[[str], str | None], *, wait_s: float, clock: Clock | None = None
) -> Iterator[Finding]:
    """`outcome_of` gives what the ledger says of a key of the landing bucket, None where it has no row."""
    clock = clock or Clock()
    s3, bucket = on.client("s3"), on.landing_buckets[0]
    key = f"{on.landing_prefix}forebay-doctor-{uuid4().hex}.json"
    put = s3.put_object(Bucket=bucket, Key=key, Body=BODY)
    version = {"VersionId": put["VersionId"]} if put.get("VersionId") else {}
    lost_before = _lost(on)
    try:
        outcome, until = None, clock.now_s() + wait_s
        while (outcome := outcome_of(key)) is None and clock.now_s() < until:
            clock.sleep(EVERY_S)
        if outcome is None:
            yield _where_it_is_stuck(on, key, wait_s, lost_before)
        elif outcome not in ("empty", IGNORED):  # where feeds are declared, it may be of none
            what = f"the ledger has the empty probe s3://{bucket}/{key} as {outcome!r}"
            yield error(
                what,
                "The job cannot read what lands.",
                f"forebay files show s3://{bucket}/{key}",
            )
    finally:
        s3.delete_object(Bucket=bucket, Key=key, **version)


def _where_it_is_stuck(on: Deployment, key: str, wait_s: float, lost_before: int) -> Finding:
    """The last place that it is known to have reached."""
    if _lost(on) > lost_before:
        what = "the probe was announced, but could not be delivered to the queue"
        return error(what, "The policy of the queue or of its key does not let SNS or EventBridge in.")
    states = [run["JobRunState"] for run in newest_runs(on, on.outputs["IngestJob"])]
    running = [state for state in states if state in AT_WORK]
    if _count(on, on.queue_url):
        what = f"after {wait_s:g} s the probe is still in the queue"
        if on.emr_application:
            why = "Check whether a run of the ingest job is active. A start takes a minute or two, a backlog longer."
            fix = f"aws emr-serverless list-job-runs --application-id {on.emr_application}"
            return warning(what, why, fix)
        if not running:
            why = "No run of the ingest job is active: start_ingest has not started one yet, or the last one failed."
            fix = f"aws glue get-job-runs --job-name {on.outputs['IngestJob']} --max-results 1"
            return error(what, why, fix)
        why = f"A run of the ingest job is {running[0]}. A start takes a minute or two, a backlog longer."
        return warning(what, why, "run it again with a longer --wait-s")
    if running:
        what = f"after {wait_s:g} s the probe is not in the ledger, and the queue is empty"
        why = f"A run of the ingest job is {running[0]} and may be processing it, or it never reached the queue."
        return warning(what, why, "run it again with a longer --wait-s")
    what = "the probe never reached the queue"
    why = f"S3 did not announce {key}, or the topic's policy, its key or a filter stopped the notification."
    return error(what, why, "see the findings about landing, queues and keys")


def _lost(on: Deployment) -> int:
    return _count(on, on.undelivered_url) if on.undelivered_url else 0


def _count(on: Deployment, url: str) -> int:
    depth = depth_of(url, sqs=on.client("sqs"))
    return depth.waiting + depth.in_flight


def outcome_in_ledger(on: Deployment) -> Callable[[str], str | None]:
    """The outcome of a key in the ledger of the deployed lake; None before its first batch."""
    from forebay.operate.lake_view import LakeView
    from forebay.operate.looking.files import versions_of

    def outcome(key: str) -> str | None:
        found = versions_of(LakeView(on.outputs["LakeUri"]), on.landing_buckets[0], key)
        return found[0].outcome if found else None

    return outcome
