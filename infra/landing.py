"""Where files land and how we hear of it: bucket -> topic -> queue, and two places for what could not be delivered or taken.

Made anew, or an existing bucket and its topic are adopted: then only our queue subscribes, and nothing of theirs changes.
Everything is declared in CloudFormation's own terms; a custom resource would need a Lambda, and rights over any bucket.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aws_cdk import Aws, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.buckets import arn_of, name_of, private_bucket
from infra.review import acknowledge
from infra.settings import Settings

__all__ = ["Landing", "landing_bucket_name", "topic_arn_of"]

MAX_RECEIVES = 5
NOT_WORTH_MOVING_BYTES = 128 * 1024
"""https://docs.aws.amazon.com/AmazonS3/latest/userguide/lifecycle-transition-general-considerations.html"""
QUEUE_KEEPS = Duration.days(4)
DEAD_LETTERS_KEEP = Duration.days(14)
"""More than the queue: a message that moves there takes its age along."""


def landing_bucket_name(settings: Settings) -> str:
    return settings.landing_bucket or name_of(settings, "landing")


def topic_arn_of(settings: Settings) -> str:
    """Built from its name, so that the key's policy can name the topic that is encrypted with it."""
    ours = f"arn:{Aws.PARTITION}:sns:{Aws.REGION}:{Aws.ACCOUNT_ID}:{settings.name}-arrivals"
    return settings.landing_topic or ours


class Landing(Construct):
    def __init__(
        self, scope: Construct, construct_id: str, *, settings: Settings, key: kms.IKey, access_logs: s3.IBucket
    ) -> None:
        super().__init__(scope, construct_id)
        self._settings, self._key = settings, key
        self.bucket_name = landing_bucket_name(settings)
        self.bucket_arn = arn_of(self.bucket_name)
        self.dead = self._queue("Dead", "arrivals-dead", retention_period=DEAD_LETTERS_KEEP)
        self.undelivered = self._queue("Undelivered", "arrivals-undelivered", retention_period=DEAD_LETTERS_KEEP)
        for end in (self.dead, self.undelivered):
            acknowledge(end, "SQS3", "it is a dead-letter queue itself")
        self.queue = self._queue(
            "Queue",
            "arrivals",
            retention_period=QUEUE_KEEPS,
            visibility_timeout=Duration.minutes(5),
            receive_message_wait_time=Duration.seconds(20),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.dead, max_receive_count=MAX_RECEIVES),
        )
        self.topic_arn = settings.landing_topic or self._bucket_that_announces(access_logs)
        self._subscribe()

    @property
    def queues(self) -> tuple[sqs.Queue, ...]:
        return self.queue, self.dead, self.undelivered

    @property
    def dead_urls(self) -> str:
        return f"{self.dead.queue_url},{self.undelivered.queue_url}"

    def _queue(self, construct_id: str, name: str, **more: Any) -> sqs.Queue:
        return sqs.Queue(
            self,
            construct_id,
            queue_name=f"{self._settings.name}-{name}",
            encryption=sqs.QueueEncryption.KMS,
            encryption_master_key=self._key,
            enforce_ssl=True,
            **more,
        )

    def _bucket_that_announces(self, access_logs: s3.IBucket) -> str:
        topic = sns.Topic(
            self, "Arrivals", topic_name=f"{self._settings.name}-arrivals", master_key=self._key, enforce_ssl=True
        )
        topic.add_to_resource_policy(self._may_publish(topic))
        bucket = private_bucket(
            self,
            "landing",
            settings=self._settings,
            key=self._key,
            access_logs=access_logs,
            versioned=True,
            lifecycle_rules=[*self._ageing(), old_versions()],
        )
        raw = bucket.node.default_child
        assert isinstance(raw, s3.CfnBucket)
        # The CDK writes a number where CloudFormation's schema has a text.
        size = "LifecycleConfiguration.Rules.1.ObjectSizeGreaterThan"
        raw.add_property_override(size, str(NOT_WORTH_MOVING_BYTES))
        raw.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
            topic_configurations=[
                s3.CfnBucket.TopicConfigurationProperty(
                    event="s3:ObjectCreated:*", topic=topic.topic_arn, filter=self._filter()
                )
            ]
        )
        # S3 tries the topic when the notification is set.
        raw.node.add_dependency(topic.node.find_child("Policy"))
        return topic.topic_arn

    def _may_publish(self, topic: sns.Topic) -> iam.PolicyStatement:
        return iam.PolicyStatement(
            sid="LandingBucketPublishes",
            principals=[iam.ServicePrincipal("s3.amazonaws.com")],
            actions=["sns:Publish"],
            resources=[topic.topic_arn],
            conditions={
                "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                "ArnEquals": {"aws:SourceArn": self.bucket_arn},
            },
        )

    def _filter(self) -> s3.CfnBucket.NotificationFilterProperty | None:
        if not self._settings.landing_prefix:
            return None
        rule = s3.CfnBucket.FilterRuleProperty(name="prefix", value=self._settings.landing_prefix)
        return s3.CfnBucket.NotificationFilterProperty(s3_key=s3.CfnBucket.S3KeyFilterProperty(rules=[rule]))

    def _ageing(self) -> Iterator[s3.LifecycleRule]:
        """A small file would pay for the transition, and then as much as one of 128 KB."""
        below = self._settings.landing_prefix or None
        cheaper = s3.Transition(
            storage_class=s3.StorageClass.INFREQUENT_ACCESS,
            transition_after=Duration.days(self._settings.landing_ia_days),
        )
        yield s3.LifecycleRule(
            id="large-landed-files",
            prefix=below,
            object_size_greater_than=NOT_WORTH_MOVING_BYTES,
            transitions=[cheaper],
        )
        if keep := self._settings.keep_landed_days:
            yield s3.LifecycleRule(id="landed-files", prefix=below, expiration=Duration.days(keep))

    def _subscribe(self) -> None:
        """Not `add_subscription`: that gives every topic of the account the use of the queue's key."""
        subscription = sns.CfnSubscription(
            self,
            "Subscription",
            topic_arn=self.topic_arn,
            protocol="sqs",
            endpoint=self.queue.queue_arn,
            raw_message_delivery=True,
            redrive_policy={"deadLetterTargetArn": self.undelivered.queue_arn},
        )
        for queue in (self.queue, self.undelivered):
            queue.add_to_resource_policy(
                iam.PolicyStatement(
                    sid="TopicDelivers",
                    principals=[iam.ServicePrincipal("sns.amazonaws.com")],
                    actions=["sqs:SendMessage"],
                    resources=[queue.queue_arn],
                    conditions={"ArnEquals": {"aws:SourceArn": topic_arn_of(self._settings)}},
                )
            )
            # The first files must find the door open.
            subscription.node.add_dependency(queue.node.find_child("Policy"))


def old_versions() -> s3.LifecycleRule:
    """A replaced file stays readable by its version for as long as a queue and its dead letters could name it."""
    return s3.LifecycleRule(id="old-versions", noncurrent_version_expiration=Duration.days(30))
