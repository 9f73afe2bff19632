"""The KMS key for data on its way and in the lake.

A service that hands something encrypted to another one needs the key itself: S3 to publish to our topic, SNS to put into our
queues, CloudWatch to publish alarms, CloudWatch Logs to keep logs. Each is let in for this account and, where the service
says which thing it acts for, for that thing alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aws_cdk import Aws
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from infra.buckets import removal_of
from infra.deliveries import one_or_all, rule_arns_of
from infra.forms import listed
from infra.principals import KEY, conditions
from infra.settings import Settings

USE = ("kms:Decrypt", "kms:GenerateDataKey*")


class Keys(Construct):
    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: Settings,
        landing_bucket_arn: str,
        topic_arns: Sequence[str],
    ) -> None:
        """`landing_bucket_arn` is of the bucket that is made here, if one is."""
        super().__init__(scope, construct_id)
        self.data = self._data_key(settings)
        alarms = f"arn:{Aws.PARTITION}:cloudwatch:{Aws.REGION}:{Aws.ACCOUNT_ID}:alarm:{settings.name}-*"
        if landing_bucket_arn:
            self._let_in("s3.amazonaws.com", "LandingBucketPublishes", source=landing_bucket_arn)
            self._let_in_producers(settings, landing_bucket_arn)
        if topic_arns:
            self._let_in("sns.amazonaws.com", "TopicFillsQueues", source=one_or_all(topic_arns))
        if settings.landing_eventbridge:
            self._let_in("events.amazonaws.com", "RuleFillsQueues", source=one_or_all(rule_arns_of(settings)))
        self._let_in("cloudwatch.amazonaws.com", "AlarmsPublish", source=alarms)
        if settings.budget_usd_month:
            of_ours = conditions("budgets", KEY, StringEquals={"aws:SourceAccount": Aws.ACCOUNT_ID})
            self.data.add_to_resource_policy(_statement("BudgetPublishes", "budgets.amazonaws.com", USE, of_ours))
        self._let_in_logs(settings)

    def _data_key(self, settings: Settings) -> kms.IKey:
        """The policy of an adopted one is its owner's: `forebay doctor` says which services it must let in."""
        if settings.data_key:
            return kms.Key.from_key_arn(self, "Data", settings.data_key)
        return self._key("Data", settings, "queues, topics, landed files, tables and logs")

    def _key(self, name: str, settings: Settings, what: str) -> kms.Key:
        return kms.Key(
            self,
            name,
            alias=f"alias/{settings.name}-{name.lower()}",
            description=f"{settings.name}: {what}",
            enable_key_rotation=True,
            removal_policy=removal_of(settings),
        )

    def _let_in(self, service: str, sid: str, *, source: str | list[str]) -> None:
        # The ARNs of topics and alarms have their account in them, which for an adopted topic may be another one.
        asked: dict[str, dict[str, Any]] = {"ArnLike": {"aws:SourceArn": source}}
        if service == "s3.amazonaws.com":
            asked["StringEquals"] = {"aws:SourceAccount": Aws.ACCOUNT_ID}
        self.data.add_to_resource_policy(_statement(sid, service, USE, conditions(service, KEY, **asked)))

    def _let_in_producers(self, settings: Settings, bucket_arn: str) -> None:
        """Whoever puts an object under a key needs the key, and to decrypt where it comes in parts. Only through S3, and
        for this bucket alone. https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html"""
        if accounts := listed(settings.producer_accounts):
            through = {"kms:ViaService": [f"s3.{Aws.REGION}.{end}" for end in ("amazonaws.com", Aws.URL_SUFFIX)]}
            objects = {"kms:EncryptionContext:aws:s3:arn": [bucket_arn, f"{bucket_arn}/*"]}
            self.data.add_to_resource_policy(
                iam.PolicyStatement(
                    sid="ProducersPut",
                    principals=[iam.AccountPrincipal(account) for account in accounts],
                    actions=["kms:Decrypt", "kms:GenerateDataKey"],
                    resources=["*"],
                    conditions={"StringEquals": through, "StringLike": objects},
                )
            )

    def _let_in_logs(self, settings: Settings) -> None:
        context = {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": log_group_arns(settings)}}
        actions = ("kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey")
        # Of the services here this one alone has another name in China.
        principal = f"logs.{Aws.REGION}.{Aws.URL_SUFFIX}"
        self.data.add_to_resource_policy(_statement("LogGroupsOfThisService", principal, actions, context))


def log_group_arns(settings: Settings) -> list[str]:
    groups = f"arn:{Aws.PARTITION}:logs:{Aws.REGION}:{Aws.ACCOUNT_ID}:log-group"
    return [f"{groups}:/{settings.name}/*"]


def _statement(sid: str, service: str, actions: tuple[str, ...], asked: dict[str, Any]) -> iam.PolicyStatement:
    # In a key's own policy "*" is this key.
    return iam.PolicyStatement(
        sid=sid,
        principals=[iam.ServicePrincipal(service)],
        actions=list(actions),
        resources=["*"],
        conditions=asked,
    )
