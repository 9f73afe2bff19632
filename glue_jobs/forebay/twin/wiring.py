"""What the twin is wired with: landing bucket -> topic -> queue (-> dead-letter queue), and the lake bucket.

Enters a declaration and three boto3 clients; leaves the addresses of what was made. The smallest wiring that a service
needs, in the order in which its infrastructure is deployed: the bucket announces to the topic before the queue
subscribes, so the queue starts empty and S3's test event goes to nobody. Done twice it changes and sends nothing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

__all__ = ["Wired", "Wiring", "wire"]


@dataclass(frozen=True)
class Wiring:
    """Names and limits. The queue keeps its messages 4 days and the dead-letter queue 14: it must keep longer, because
    a message that moves there takes its age along."""

    landing_bucket: str = "forebay-landing"
    lake_bucket: str = "forebay-lake"
    topic: str = "forebay-arrivals"
    queue: str = "forebay-arrivals"
    dead_letter_queue: str = "forebay-arrivals-dead"
    prefix: str = "in/"
    versioned: bool = False
    max_receives: int = 5
    visibility_s: int = 300
    retention_s: int = 4 * 86400
    dead_letter_retention_s: int = 14 * 86400


@dataclass(frozen=True)
class Wired:
    """Where the messages go."""

    topic_arn: str
    queue_url: str
    dlq_url: str


def wire(wiring: Wiring, *, s3: Any, sns: Any, sqs: Any) -> Wired:
    """Make all of it."""
    _make_bucket(s3, wiring.lake_bucket)
    _make_bucket(s3, wiring.landing_bucket)
    if wiring.versioned:
        s3.put_bucket_versioning(Bucket=wiring.landing_bucket, VersioningConfiguration={"Status": "Enabled"})
    topic_arn: str = sns.create_topic(Name=wiring.topic)["TopicArn"]
    _announce(s3, wiring, topic_arn)
    queue_url, dlq_url = _make_queues(sqs, wiring)
    _subscribe(sns, topic_arn, _arn(sqs, queue_url))
    return Wired(topic_arn, queue_url, dlq_url)


def _make_bucket(s3: Any, name: str) -> None:
    region = s3.meta.region_name
    # us-east-1 is the one region that must not be named.
    where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    try:
        s3.create_bucket(Bucket=name, **where)
    except ClientError as refusal:
        if refusal.response["Error"]["Code"] != "BucketAlreadyOwnedByYou":
            raise


def _announce(s3: Any, wiring: Wiring, topic_arn: str) -> None:
    wanted = {
        "Id": "arrivals",
        "TopicArn": topic_arn,
        "Events": ["s3:ObjectCreated:*"],
        "Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": wiring.prefix}]}},
    }
    there = s3.get_bucket_notification_configuration(Bucket=wiring.landing_bucket).get("TopicConfigurations", [])
    # Each time it is set, S3 sends a test event.
    if [topic["TopicArn"] for topic in there] != [topic_arn]:
        s3.put_bucket_notification_configuration(
            Bucket=wiring.landing_bucket, NotificationConfiguration={"TopicConfigurations": [wanted]}
        )


def _make_queues(sqs: Any, wiring: Wiring) -> tuple[str, str]:
    dlq_url: str = sqs.create_queue(QueueName=wiring.dead_letter_queue)["QueueUrl"]
    sqs.set_queue_attributes(
        QueueUrl=dlq_url, Attributes={"MessageRetentionPeriod": str(wiring.dead_letter_retention_s)}
    )
    queue_url: str = sqs.create_queue(QueueName=wiring.queue)["QueueUrl"]
    redrive = {"deadLetterTargetArn": _arn(sqs, dlq_url), "maxReceiveCount": wiring.max_receives}
    attributes = {
        "VisibilityTimeout": str(wiring.visibility_s),
        "MessageRetentionPeriod": str(wiring.retention_s),
        "RedrivePolicy": json.dumps(redrive),
    }
    sqs.set_queue_attributes(QueueUrl=queue_url, Attributes=attributes)
    return queue_url, dlq_url


def _subscribe(sns: Any, topic_arn: str, queue_arn: str) -> None:
    # Subscribing again returns the subscription that is there.
    sns.subscribe(TopicArn=topic_arn, Protocol="sqs", Endpoint=queue_arn, Attributes={"RawMessageDelivery": "true"})


def _arn(sqs: Any, queue_url: str) -> str:
    attributes = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])
    return str(attributes["Attributes"]["QueueArn"])
