"""The topic of alarms, and its subscribers."""

from __future__ import annotations

from aws_cdk import Aws, Duration
from aws_cdk import aws_chatbot as chatbot
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.principals import PUBLISH, TRUST, conditions
from infra.review import acknowledge
from infra.settings import Settings


def alarm_topic(scope: Construct, *, settings: Settings, key: kms.IKey) -> sns.Topic:
    topic = sns.Topic(scope, "AlarmTopic", topic_name=f"{settings.name}-alarms", master_key=key, enforce_ssl=True)
    alarms = f"arn:{Aws.PARTITION}:cloudwatch:{Aws.REGION}:{Aws.ACCOUNT_ID}:alarm:{settings.name}-*"
    topic.add_to_resource_policy(
        iam.PolicyStatement(
            sid="AlarmsPublish",
            principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
            actions=["sns:Publish"],
            resources=[topic.topic_arn],
            conditions=conditions(
                "cloudwatch",
                PUBLISH,
                StringEquals={"aws:SourceAccount": Aws.ACCOUNT_ID},
                ArnLike={"aws:SourceArn": alarms},
            ),
        )
    )
    if settings.alarm_email:
        sns.CfnSubscription(topic, "Email", topic_arn=topic.topic_arn, protocol="email", endpoint=settings.alarm_email)
    if settings.alarm_url:
        sns.CfnSubscription(topic, "Url", topic_arn=topic.topic_arn, protocol="https", endpoint=settings.alarm_url)
    if settings.alarm_slack:
        tell_slack(topic, settings=settings)
    return topic


def untold_queue(scope: Construct, *, settings: Settings) -> sqs.Queue:
    """The queue of events whose message could not be sent. SQS encrypts it with a key of its own, so that it accepts them while
    ours is disabled: they name jobs and runs, and no data."""
    queue = sqs.Queue(
        scope,
        "Untold",
        queue_name=f"{settings.name}-untold",
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=Duration.days(14),
    )
    acknowledge(queue, "SQS3", "it is a dead-letter queue itself")
    return queue


def tell_slack(topic: sns.Topic, *, settings: Settings) -> None:
    """By Amazon Q in chat applications. Its role may do nothing, so nobody can give orders from the channel."""
    workspace, _, channel = settings.alarm_slack.partition("/")
    trusted = conditions("chatbot", TRUST, StringEquals={"aws:SourceAccount": Aws.ACCOUNT_ID})
    role = iam.Role(topic, "SlackRole", assumed_by=iam.ServicePrincipal("chatbot.amazonaws.com", conditions=trusted))
    chatbot.CfnSlackChannelConfiguration(
        topic,
        "Slack",
        configuration_name=f"{settings.name}-alarms-{Aws.REGION}",  # of all regions' together
        iam_role_arn=role.role_arn,
        slack_workspace_id=workspace,
        slack_channel_id=channel,
        sns_topic_arns=[topic.topic_arn],
        guardrail_policies=[f"arn:{Aws.PARTITION}:iam::aws:policy/AWSDenyAll"],
    )
