"""moto's SNS, nearer to AWS's in what it cannot deliver: that goes to the subscription's dead-letter queue.

Fixed in moto 5.2.5: a subscription's RedrivePolicy is kept and never used, so a deleted queue is a server error for the
publisher, and so is a message that is larger than the queue takes; raw delivery passes on any number of message attributes,
though SQS takes ten; the size of a message is counted in letters of its body, not in bytes with its attributes.
https://docs.aws.amazon.com/sns/latest/dg/sns-dead-letter-queues.html
https://docs.aws.amazon.com/sns/latest/dg/sns-message-attributes.html
https://docs.aws.amazon.com/sns/latest/dg/large-message-payloads.html
"""

from __future__ import annotations

import json
from typing import Any

from moto.sns import models
from moto.sns.exceptions import InvalidParameterValue
from moto.sqs.exceptions import InvalidParameterValue as NotForThisQueue
from moto.sqs.exceptions import QueueDoesNotExist
from moto.sqs.models import sqs_backends

from forebay_local.twin.patch import Patch, apply

RAW_ATTRIBUTES = 10
MOST_BYTES = 256 * 1024
"""The maximum of a message with its attributes, if the topic has no other limit; ours has none."""
_publish = models.Subscription.publish
_take = models.SNSBackend.publish


def install() -> None:
    apply(PATCHES, relied_on)


def take(self: Any, message: str, *rest: Any, **more: Any) -> Any:
    """From whoever publishes. moto itself passes attributes by name."""
    size = len(message.encode())
    for name, attribute in (more.get("message_attributes") or {}).items():
        value = attribute["Value"]
        size += len(f"{name}{attribute['Type']}".encode()) + len(
            value if isinstance(value, bytes) else str(value).encode()
        )
    if size > MOST_BYTES:
        raise InvalidParameterValue("Invalid parameter: Message too long")
    return _take(self, message, *rest, **more)


def publish(
    self: Any,
    message: str,
    message_id: str,
    subject: str | None = None,
    message_attributes: dict[str, Any] | None = None,
    group_id: str | None = None,
    deduplication_id: str | None = None,
    message_structure: str | None = None,
) -> None:
    raw = self.protocol == "sqs" and str(self.attributes.get("RawMessageDelivery", "")).lower() == "true"
    if raw and len(message_attributes or ()) > RAW_ATTRIBUTES:
        _send_to_dead_letters(self, message)
        return
    rest = (subject, message_attributes, group_id, deduplication_id, message_structure)
    try:
        _publish(self, message, message_id, *rest)
    except (QueueDoesNotExist, NotForThisQueue):
        _send_to_dead_letters(self, message)


def _send_to_dead_letters(subscription: Any, message: str) -> None:
    """Into the dead-letter queue; without one it is lost, as on AWS."""
    policy = json.loads(subscription.attributes.get("RedrivePolicy") or "{}")
    if arn := policy.get("deadLetterTargetArn"):
        _, _, _, region, account, name = arn.split(":")
        sqs_backends[account][region].send_message(name, message)


PATCHES = (
    Patch(
        models.Subscription,
        "publish",
        (
            "self",
            "message",
            "message_id",
            "subject",
            "message_attributes",
            "group_id",
            "deduplication_id",
            "message_structure",
        ),
        publish,
    ),
    Patch(
        models.SNSBackend,
        "publish",
        (
            "self",
            "message",
            "arn",
            "phone_number",
            "subject",
            "message_attributes",
            "group_id",
            "deduplication_id",
            "message_structure",
        ),
        take,
    ),
)


def relied_on() -> list[tuple[Any, str]]:
    make_topic: Any = models.Topic
    backend = models.sns_backends["123456789012"]["us-east-1"]
    topic = make_topic("probe", backend)
    subscription = models.Subscription("123456789012", topic, "arn:aws:sqs:us-east-1:123456789012:probe", "sqs")
    return [(subscription, name) for name in ("protocol", "attributes")]
