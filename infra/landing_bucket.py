"""The landing bucket that is made here, and the topic that it announces its files to.

Other accounts may put files into it, if `producer_accounts` names them. The bucket owns what they put, whatever ACL they send.
"""

from __future__ import annotations

from collections.abc import Iterator

from aws_cdk import Aws, Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.buckets import arn_of, name_of, private_bucket
from infra.forms import listed
from infra.principals import PUBLISH, conditions
from infra.settings import Settings

OLD_VERSIONS_DAYS = 30

NOT_WORTH_MOVING_BYTES = 128 * 1024
"""https://docs.aws.amazon.com/AmazonS3/latest/userguide/lifecycle-transition-general-considerations.html"""


def bucket_that_announces(
    scope: Construct, *, settings: Settings, key: kms.IKey, access_logs: s3.IBucket, deletions: bool
) -> None:
    topic = sns.Topic(scope, "Arrivals", topic_name=f"{settings.name}-arrivals", master_key=key, enforce_ssl=True)
    bucket = private_bucket(
        scope,
        "landing",
        settings=settings,
        key=key,
        access_logs=access_logs,
        versioned=True,
        lifecycle_rules=[*_ageing(settings), _old_versions()],
    )
    topic.add_to_resource_policy(_may_publish(topic, arn_of(name_of(settings, "landing"))))
    for statement in _producers_may_put(settings, bucket):
        bucket.add_to_resource_policy(statement)
    raw = bucket.node.default_child
    assert isinstance(raw, s3.CfnBucket)
    if settings.landed_files_move:
        # The CDK writes a number where CloudFormation's schema has a text.
        size = "LifecycleConfiguration.Rules.1.ObjectSizeGreaterThan"
        raw.add_property_override(size, str(NOT_WORTH_MOVING_BYTES))
    raw.notification_configuration = s3.CfnBucket.NotificationConfigurationProperty(
        topic_configurations=[
            s3.CfnBucket.TopicConfigurationProperty(event=event, topic=topic.topic_arn, filter=_filter(settings))
            for event in ("s3:ObjectCreated:*", *(["s3:ObjectRemoved:*"] if deletions else []))
        ]
    )
    # S3 tries the topic when the notification is set.
    raw.node.add_dependency(topic.node.find_child("Policy"))


def _producers_may_put(settings: Settings, bucket: s3.IBucket) -> Iterator[iam.PolicyStatement]:
    """The account itself decides which of its roles may. https://docs.aws.amazon.com/AmazonS3/latest/userguide/about-object-ownership.html"""
    if accounts := listed(settings.producer_accounts):
        yield iam.PolicyStatement(
            sid="ProducersPut",
            principals=[iam.AccountPrincipal(account) for account in accounts],
            actions=["s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"],
            resources=[bucket.arn_for_objects(f"{settings.landing_prefix}*")],
        )


def _may_publish(topic: sns.Topic, bucket_arn: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid="LandingBucketPublishes",
        principals=[iam.ServicePrincipal("s3.amazonaws.com")],
        actions=["sns:Publish"],
        resources=[topic.topic_arn],
        conditions=conditions(
            "s3",
            PUBLISH,
            StringEquals={"aws:SourceAccount": Aws.ACCOUNT_ID},
            ArnEquals={"aws:SourceArn": bucket_arn},
        ),
    )


def _filter(settings: Settings) -> s3.CfnBucket.NotificationFilterProperty | None:
    if not settings.landing_prefix:
        return None
    rule = s3.CfnBucket.FilterRuleProperty(name="prefix", value=settings.landing_prefix)
    return s3.CfnBucket.NotificationFilterProperty(s3_key=s3.CfnBucket.S3KeyFilterProperty(rules=[rule]))


def _ageing(settings: Settings) -> Iterator[s3.LifecycleRule]:
    """A small file would pay for the transition, and then as much as one of 128 KB."""
    below = settings.landing_prefix or None
    cheaper = s3.Transition(
        storage_class=s3.StorageClass.INFREQUENT_ACCESS,
        transition_after=Duration.days(settings.landing_ia_days),
    )
    if settings.landed_files_move:
        yield s3.LifecycleRule(
            id="large-landed-files",
            prefix=below,
            object_size_greater_than=NOT_WORTH_MOVING_BYTES,
            transitions=[cheaper],
        )
    if keep := settings.keep_landed_days:
        yield s3.LifecycleRule(id="landed-files", prefix=below, expiration=Duration.days(keep))


def _old_versions() -> s3.LifecycleRule:
    """A replaced or deleted file stays readable by its version for as long as a queue and its dead letters could name it. The
    mark that S3 puts over a deleted one goes with its last version: each would be listed, and paid for, every night."""
    after = Duration.days(OLD_VERSIONS_DAYS)
    return s3.LifecycleRule(id="old-versions", noncurrent_version_expiration=after, expired_object_delete_marker=True)
