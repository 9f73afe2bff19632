"""Checks of the queue and its two dead-letter queues."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from forebay.counted import counted
from forebay.operate.doctor.finding import Finding, error, warning
from forebay.operate.doctor.policy import lets_in
from forebay.operate.stack.deployment import Deployment

LEAST_RECEIVES = 3
NAMES = {"sns.amazonaws.com": "SNS", "events.amazonaws.com": "EventBridge"}


def deliveries(on: Deployment) -> Iterator[Finding]:
    """SNS or EventBridge may write to the queue, and to the queue of what cannot be delivered."""
    for url in (on.queue_url, on.undelivered_url):
        for service, source in on.fillers:
            policy = _attributes(on, url).get("Policy", "")
            if not lets_in(policy, service, "sqs:SendMessage", source=source, account=on.account):
                what = f"the policy of the queue {_name(url)} does not let {NAMES[service]} send for {source}"
                yield error(what, "Notifications do not arrive.")


def redrive(on: Deployment) -> Iterator[Finding]:
    attributes = _attributes(on, on.queue_url)
    policy, dead = json.loads(attributes.get("RedrivePolicy") or "{}"), on.dead_url
    if policy.get("deadLetterTargetArn") != on.queue_arn(dead):
        what = f"messages of {_name(on.queue_url)} do not move to {_name(dead)}"
        yield error(what, "A message that never succeeds is redelivered until SQS deletes it, and no alarm rings.")
    elif int(policy["maxReceiveCount"]) < LEAST_RECEIVES:
        what = f"a message moves to {_name(dead)} after {policy['maxReceiveCount']} receives"
        yield error(what, "A single restart of the job can turn good files into dead letters.")
    kept, kept_dead = int(attributes["MessageRetentionPeriod"]), int(_attributes(on, dead)["MessageRetentionPeriod"])
    if kept_dead <= kept:
        what = f"{_name(dead)} keeps messages for {kept_dead} s, no longer than the queue, {kept} s"
        fix = f"aws sqs set-queue-attributes --queue-url {dead} --attributes MessageRetentionPeriod=1209600"
        yield error(what, "A message keeps its age when it moves: it may be deleted on arrival.", fix)


def dead_letters(on: Deployment) -> Iterator[Finding]:
    dead = on.dead_url
    for url, why in (
        (
            dead,
            "Each was not understood, or was received too often while its batch never finished. The command shows which.",
        ),
        (on.undelivered_url, "They could not be delivered to the queue."),
    ):
        if url and (count := int(_attributes(on, url)["ApproximateNumberOfMessages"])):
            fix = f"forebay queue dlq --queue-url {on.queue_url}" if url == dead else "see undelivered in the runbook"
            yield warning(f"{counted(count, 'message')} in {_name(url)}", why, fix)


def encryption(on: Deployment) -> Iterator[Finding]:
    """Nobody can give SNS the use of a key that AWS manages."""
    for url in filter(None, (on.queue_url, on.undelivered_url)):
        if _attributes(on, url).get("KmsMasterKeyId", "").endswith("alias/aws/sqs"):
            what = f"the queue {_name(url)} is encrypted with alias/aws/sqs"
            yield error(what, "SNS may not use that key, so nothing arrives.")


def key_of_data(on: Deployment) -> str:
    """An older deployment does not name the key; then it is the key of its queue."""
    return on.outputs.get("DataKey") or key_of_queue(on)


def key_of_queue(on: Deployment) -> str:
    return str(_attributes(on, on.queue_url).get("KmsMasterKeyId", ""))


def _attributes(on: Deployment, url: str) -> dict[str, Any]:
    return dict(on.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"])


def _name(url: str) -> str:
    return url.rpartition("/")[2]
