"""Which AWS services act on what is made here, and what a policy may ask of their requests.

A condition on something that a service does not send refuses all its requests: no job starts, or each event is lost without a
word. So a condition is plain where AWS documents it for this service and use. Elsewhere it ends with `IfExists`: it decides
where the service sends what it asks for, and is passed over where not. `TABLE` is the one place that says which is which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["KEY", "PUBLISH", "SEND", "TABLE", "TRUST", "conditions", "markdown"]

TRUST, PUBLISH, SEND, KEY = "takes a role on", "publishes to a topic", "sends to a queue", "uses a key"


@dataclass(frozen=True)
class Told:
    """Where AWS shows the policy, whether it shows one with conditions on the source, and whether that was seen in a stored
    copy of the page, on 2026-11-24. The other entries are from memory."""

    is_conditional: bool
    title: str
    source: str
    was_seen: bool = False


_DOCS = "https://docs.aws.amazon.com"
_S3 = f"{_DOCS}/AmazonS3/latest/userguide/grant-destinations-permissions-to-s3.html"
_S3_TITLE = "Granting permissions to publish event notification messages to a destination"
_BUDGETS = f"{_DOCS}/cost-management/latest/userguide/budgets-sns-policy.html"
_BUDGETS_TITLE = "Creating an Amazon SNS topic for budget notifications"
_SNS, _EVENTS = f"{_DOCS}/sns/latest/dg", f"{_DOCS}/eventbridge/latest/userguide"
TABLE: Mapping[tuple[str, str], Told] = {
    ("s3", PUBLISH): Told(True, _S3_TITLE, _S3),
    ("s3", KEY): Told(False, _S3_TITLE, _S3),
    ("s3", TRUST): Told(
        False,
        "Setting up permissions for live replication",
        f"{_DOCS}/AmazonS3/latest/userguide/setting-repl-config-perm-overview.html",
    ),
    ("sns", SEND): Told(
        True, "Subscribing an Amazon SQS queue to an Amazon SNS topic", f"{_SNS}/subscribe-sqs-queue-to-sns-topic.html"
    ),
    ("sns", KEY): Told(
        False,
        "Setting up Amazon SNS topic encryption with encrypted Amazon SQS queue subscription",
        f"{_SNS}/sns-enable-encryption-for-topic-sqs-queue-subscriptions.html",
    ),
    ("events", SEND): Told(
        True,
        "Using resource-based policies for Amazon EventBridge",
        f"{_EVENTS}/eb-use-resource-based.html",
        was_seen=True,
    ),
    ("events", KEY): Told(
        False, "KMS key policies for encrypting EventBridge event buses", f"{_EVENTS}/eb-encryption-key-policy.html"
    ),
    ("cloudwatch", PUBLISH): Told(
        True, "Example cases for Amazon SNS access control", f"{_SNS}/sns-access-policy-use-cases.html"
    ),
    ("cloudwatch", KEY): Told(
        False, "Managing Amazon SNS encryption keys and costs", f"{_SNS}/sns-key-management.html"
    ),
    ("budgets", PUBLISH): Told(True, _BUDGETS_TITLE, _BUDGETS, was_seen=True),
    ("budgets", KEY): Told(False, _BUDGETS_TITLE, _BUDGETS),
    ("scheduler", TRUST): Told(
        True,
        "Confused deputy prevention in EventBridge Scheduler",
        f"{_DOCS}/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html",
        was_seen=True,
    ),
    ("glue", TRUST): Told(False, "Create an IAM role for AWS Glue", f"{_DOCS}/glue/latest/dg/create-an-iam-role.html"),
    ("emr-serverless", TRUST): Told(
        False,
        "Job runtime roles for Amazon EMR Serverless",
        f"{_DOCS}/emr/latest/EMR-Serverless-UserGuide/security-iam-runtime-role.html",
    ),
    ("chatbot", TRUST): Told(
        False,
        "IAM policies for Amazon Q Developer in chat applications",
        f"{_DOCS}/chatbot/latest/adminguide/chatbot-iam-policies.html",
    ),
}
"""By service and use. Scheduler sends the ARN of the schedule's group, and not that of a schedule. AWS's Modern Data
Architecture Accelerator says, beside `grantCloudWatchAlarmsTopicAccess`, that CloudWatch sends its source with a use of a key,
and that EventBridge does not."""


def conditions(service: str, use: str, **asked: Mapping[str, Any]) -> dict[str, Any]:
    """`asked` by operator, such as `ArnLike`. `service` is with or without `.amazonaws.com`."""
    plain = TABLE[service.removesuffix(".amazonaws.com"), use].is_conditional
    return {operator if plain else f"{operator}IfExists": values for operator, values in asked.items()}


def markdown() -> str:
    """The table for readers."""
    lines = [
        "| service | what it does | conditions on its source | AWS's page | seen |",
        "| --- | --- | --- | --- | --- |",
    ]
    for (service, use), one in TABLE.items():
        how = "asked for" if one.is_conditional else "with `IfExists`"
        lines.append(
            f"| `{service}` | {use} | {how} | [{one.title}]({one.source}) | {'yes' if one.was_seen else 'no'} |"
        )
    return "\n".join(lines)
