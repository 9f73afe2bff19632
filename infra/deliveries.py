"""Brings announcements into our queue, by subscriptions to topics or a rule of EventBridge. Keeps undelivered ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aws_cdk import Aws
from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.forms import listed
from infra.principals import SEND, conditions
from infra.settings import Settings

BUCKETS_OF_A_RULE = 25
"""An event pattern has 2,048 characters, and a bucket's name up to 63.
https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html"""


def topic_arns_of(settings: Settings) -> list[str]:
    """Ours is built from its name, so that the key's policy can name the topic that is encrypted with it."""
    if settings.landing_eventbridge or settings.landing_queue:
        return []
    ours = f"arn:{Aws.PARTITION}:sns:{Aws.REGION}:{Aws.ACCOUNT_ID}:{settings.name}-arrivals"
    return listed(settings.landing_topic) or [ours]


def rule_arns_of(settings: Settings) -> list[str]:
    here = f"arn:{Aws.PARTITION}:events:{Aws.REGION}:{Aws.ACCOUNT_ID}:rule"
    return [f"{here}/{name}" for name in _rules(settings)]


def subscribe(scope: Construct, queue: sqs.Queue, undelivered: sqs.Queue, *, topics: Sequence[str]) -> None:
    """Not `add_subscription`: that gives every topic of the account the use of the queue's key."""
    for end in (queue, undelivered):
        _may_send(end, "TopicDelivers", "sns.amazonaws.com", topics)
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
    scope: Construct, queue: sqs.Queue, undelivered: sqs.Queue, *, settings: Settings, deletions: bool
) -> None:
    """S3's events come to the account's default bus. A bucket of another account, or region, must have them sent there."""
    for end in (queue, undelivered):
        _may_send(end, "RuleDelivers", "events.amazonaws.com", rule_arns_of(settings))
    target = events.CfnRule.TargetProperty(
        id="Queue",
        arn=queue.queue_arn,
        dead_letter_config=events.CfnRule.DeadLetterConfigProperty(arn=undelivered.queue_arn),
    )
    for number, (name, buckets) in enumerate(_rules(settings).items()):
        rule = events.CfnRule(
            scope,
            f"Landed{number or ''}",
            name=name,
            description="S3 announces a file that landed",
            event_pattern=_pattern(buckets, settings.landing_prefix, deletions=deletions),
            targets=[target],
        )
        for end in (queue, undelivered):
            rule.node.add_dependency(end.node.find_child("Policy"))


def _rules(settings: Settings) -> dict[str, list[str]]:
    """By their names, the buckets of each: many do not fit into one."""
    first = f"{settings.name}-landed"
    buckets = listed(settings.landing_bucket)
    some = [buckets[at : at + BUCKETS_OF_A_RULE] for at in range(0, len(buckets), BUCKETS_OF_A_RULE)]
    return {f"{first}-{number}" if number else first: of_one for number, of_one in enumerate(some)}


def _pattern(buckets: list[str], prefix: str, *, deletions: bool) -> dict[str, Any]:
    detail: dict[str, Any] = {"bucket": {"name": buckets}}
    if prefix:
        detail["object"] = {"key": [{"prefix": prefix}]}
    kinds = ["Object Created", *(["Object Deleted"] if deletions else [])]
    return {"source": ["aws.s3"], "detail-type": kinds, "detail": detail}


def one_or_all(arns: Sequence[str]) -> str | list[str]:
    return arns[0] if len(arns) == 1 else list(arns)


def _may_send(queue: sqs.Queue, sid: str, service: str, sources: Sequence[str]) -> None:
    queue.add_to_resource_policy(
        iam.PolicyStatement(
            sid=sid,
            principals=[iam.ServicePrincipal(service)],
            actions=["sqs:SendMessage"],
            resources=[queue.queue_arn],
            conditions=conditions(service, SEND, ArnEquals={"aws:SourceArn": one_or_all(sources)}),
        )
    )
