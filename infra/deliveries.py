"""How announcements get into our queue: subscriptions to topics, or a rule of EventBridge. What cannot be delivered is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aws_cdk import Aws
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.settings import Settings, listed

__all__ = ["events_fill", "rule_arn_of", "subscribe", "topic_arns_of"]


def topic_arns_of(settings: Settings) -> list[str]:
    """Ours is built from its name, so that the key's policy can name the topic that is encrypted with it."""
    if settings.landing_eventbridge or settings.landing_queue:
        return []
    ours = f"arn:{Aws.PARTITION}:sns:{Aws.REGION}:{Aws.ACCOUNT_ID}:{settings.name}-arrivals"
    return listed(settings.landing_topic) or [ours]


def rule_arn_of(settings: Settings) -> str:
    return f"arn:{Aws.PARTITION}:events:{Aws.REGION}:{Aws.ACCOUNT_ID}:rule/{_rule_name(settings)}"


def subscribe(scope: Construct, queue: sqs.Queue, undelivered: sqs.Queue, *, topics: Sequence[str]) -> None:
    """Not `add_subscription`: that gives every topic of the account the use of the queue's key."""
    let_in = {"ArnEquals": {"aws:SourceArn": topics[0] if len(topics) == 1 else list(topics)}}
    for end in (queue, undelivered):
        _may_send(end, "TopicDelivers", "sns.amazonaws.com", let_in)
    for number, topic in enumerate(topics):
        subscription = sns.CfnSubscription(
            scope,
            f"Subscription{number or ''}",
            topic_arn=topic,
            protocol="sqs",
            endpoint=queue.queue_arn,
            raw_message_delivery=True,
            redrive_policy={"deadLetterTargetArn": undelivered.queue_arn},
        )
        # The first files must find the door open.
        for end in (queue, undelivered):
            subscription.node.add_dependency(end.node.find_child("Policy"))


def events_fill(
    scope: Construct, queue: sqs.Queue, undelivered: sqs.Queue, *, settings: Settings, buckets: Sequence[str]
) -> None:
    """S3's events come to the account's default bus. A bucket of another account, or region, must have them sent there."""
    for end in (queue, undelivered):
        _may_send(end, "RuleDelivers", "events.amazonaws.com", {"ArnEquals": {"aws:SourceArn": rule_arn_of(settings)}})
    detail: dict[str, Any] = {"bucket": {"name": list(buckets)}}
    if settings.landing_prefix:
        detail["object"] = {"key": [{"prefix": settings.landing_prefix}]}
    rule = events.CfnRule(
        scope,
        "Landed",
        name=_rule_name(settings),
        description="S3 announces a file that landed",
        event_pattern={"source": ["aws.s3"], "detail-type": ["Object Created"], "detail": detail},
        targets=[
            events.CfnRule.TargetProperty(
                id="Queue",
                arn=queue.queue_arn,
                dead_letter_config=events.CfnRule.DeadLetterConfigProperty(arn=undelivered.queue_arn),
            )
        ],
    )
    for end in (queue, undelivered):
        rule.node.add_dependency(end.node.find_child("Policy"))


def _rule_name(settings: Settings) -> str:
    return f"{settings.name}-landed"


def _may_send(queue: sqs.Queue, sid: str, service: str, conditions: dict[str, Any]) -> None:
    queue.add_to_resource_policy(
        iam.PolicyStatement(
            sid=sid,
            principals=[iam.ServicePrincipal(service)],
            actions=["sqs:SendMessage"],
            resources=[queue.queue_arn],
            conditions=conditions,
        )
    )
