"""Lists the AWS services that act for the deployment, and the conditions that a policy may put on their requests.

A condition on something that a service does not send refuses all its requests: no job starts, or each event is lost without a
word. So a condition is plain where AWS's page shows it for this service and use. Elsewhere it ends with `IfExists`: it decides
where the service sends what it asks for, and is passed over where not. `TABLE` is the one place that says which is which. The
CDK writes the policies of access logs, of functions that a rule calls, and the trust of functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TRUST, PUBLISH, SEND, KEY = "takes a role on", "publishes to a topic", "sends to a queue", "uses a key"
CALL, LOG = "calls a function", "writes access logs"
CONDITIONS = "conditions on the source"
CONTEXT = "a condition on the log group"
WITHOUT = "a policy without any"
NO_POLICY = "no policy"
NO_DATE = "no date"


@dataclass(frozen=True)
class Told:
    """`shows` is what AWS's page has for this use: `CONDITIONS`, `CONTEXT`, `WITHOUT` or `NO_POLICY`. `seen` is the month of
    the text of AWS that was read. If we ask nothing, `why` says the reason."""

    shows: str
    title: str
    source: str
    seen: str
    why: str = ""

    @property
    def is_conditional(self) -> bool:
        return self.shows in (CONDITIONS, CONTEXT)

    @property
    def asked(self) -> str:
        return f"none: {self.why}" if self.why else "plain" if self.is_conditional else "`IfExists`"


_DOCS = "https://docs.aws.amazon.com"
_S3 = f"{_DOCS}/AmazonS3/latest/userguide"
_TO_S3 = (
    "Granting permissions to publish event notification messages to a destination",
    f"{_S3}/grant-destinations-permissions-to-s3.html",
)
_BUDGETS = (
    "Creating an Amazon SNS topic for budget notifications",
    f"{_DOCS}/cost-management/latest/userguide/budgets-sns-policy.html",
)
_TO_TARGETS = (
    "Using resource-based policies for Amazon EventBridge",
    f"{_DOCS}/eventbridge/latest/userguide/eb-use-resource-based.html",
)
_SNS, _EVENTS = f"{_DOCS}/sns/latest/dg", f"{_DOCS}/eventbridge/latest/userguide"
TABLE: Mapping[tuple[str, str], Told] = {
    ("s3", PUBLISH): Told(CONDITIONS, *_TO_S3, "2023-06"),
    ("s3", KEY): Told(WITHOUT, *_TO_S3, "2023-06"),
    ("s3", TRUST): Told(
        WITHOUT,
        "Setting up permissions for live replication",
        f"{_S3}/setting-repl-config-perm-overview.html",
        "2023-06",
    ),
    ("sns", SEND): Told(
        CONDITIONS,
        "Subscribing an Amazon SQS queue to an Amazon SNS topic",
        f"{_SNS}/subscribe-sqs-queue-to-sns-topic.html",
        "2022-12",
    ),
    ("sns", KEY): Told(
        WITHOUT,
        "Setting up Amazon SNS topic encryption with encrypted Amazon SQS queue subscription",
        f"{_SNS}/sns-enable-encryption-for-topic-sqs-queue-subscriptions.html",
        "2022-12",
    ),
    ("events", SEND): Told(CONDITIONS, *_TO_TARGETS, "2023-06"),
    ("events", KEY): Told(
        WITHOUT,
        "Troubleshooting Amazon EventBridge: My events are not delivered to the target Amazon SQS queue",
        f"{_EVENTS}/eb-troubleshooting.html",
        "2023-06",
    ),
    ("events", CALL): Told(CONDITIONS, *_TO_TARGETS, "2023-06"),
    ("logging.s3", LOG): Told(
        CONDITIONS, "Enabling Amazon S3 server access logging", f"{_S3}/enable-server-access-logging.html", NO_DATE
    ),
    ("logs", KEY): Told(
        CONTEXT,
        "Encrypt log data in CloudWatch Logs using AWS Key Management Service",
        f"{_DOCS}/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html",
        NO_DATE,
    ),
    ("lambda", TRUST): Told(
        WITHOUT,
        "Defining Lambda function permissions with an execution role",
        f"{_DOCS}/lambda/latest/dg/lambda-intro-execution-role.html",
        NO_DATE,
        why="only this account may pass the role",
    ),
    ("cloudwatch", PUBLISH): Told(
        CONDITIONS, "Example cases for Amazon SNS access control", f"{_SNS}/sns-access-policy-use-cases.html", "2022-12"
    ),
    ("cloudwatch", KEY): Told(
        WITHOUT, "Managing Amazon SNS encryption keys and costs", f"{_SNS}/sns-key-management.html", "2022-12"
    ),
    ("budgets", PUBLISH): Told(CONDITIONS, *_BUDGETS, NO_DATE),
    ("budgets", KEY): Told(WITHOUT, *_BUDGETS, "2022-02"),
    ("scheduler", TRUST): Told(
        CONDITIONS,
        "Confused deputy prevention in EventBridge Scheduler",
        f"{_DOCS}/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html",
        NO_DATE,
    ),
    ("glue", TRUST): Told(
        NO_POLICY, "Create an IAM role for AWS Glue", f"{_DOCS}/glue/latest/dg/create-an-iam-role.html", "2023-06"
    ),
    ("emr-serverless", TRUST): Told(
        WITHOUT,
        "EMR Serverless Samples, of AWS",
        "https://github.com/aws-samples/emr-serverless-samples",
        "2026-05",
    ),
    ("chatbot", TRUST): Told(
        NO_POLICY,
        "IAM policies for Amazon Q Developer in chat applications",
        f"{_DOCS}/chatbot/latest/adminguide/chatbot-iam-policies.html",
        NO_DATE,
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
        "| service | what it does | our condition | AWS's page | it shows | text of |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for (service, use), one in TABLE.items():
        lines.append(f"| `{service}` | {use} | {one.asked} | [{one.title}]({one.source}) | {one.shows} | {one.seen} |")
    return "\n".join(lines)
