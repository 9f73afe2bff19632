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
    """Where AWS shows the policy, and whether it shows one with conditions on the source."""

    is_conditional: bool
    source: str


_DOCS = "https://docs.aws.amazon.com"
_S3 = f"{_DOCS}/AmazonS3/latest/userguide/grant-destinations-permissions-to-s3.html"
_BUDGETS = f"{_DOCS}/cost-management/latest/userguide/budgets-sns-policy.html"
TABLE: Mapping[tuple[str, str], Told] = {
    ("s3", PUBLISH): Told(True, _S3),
    ("s3", KEY): Told(False, _S3),
    ("s3", TRUST): Told(False, f"{_DOCS}/AmazonS3/latest/userguide/setting-repl-config-perm-overview.html"),
    ("sns", SEND): Told(True, f"{_DOCS}/sns/latest/dg/subscribe-sqs-queue-to-sns-topic.html"),
    ("sns", KEY): Told(False, f"{_DOCS}/sns/latest/dg/sns-enable-encryption-for-topic-sqs-queue-subscriptions.html"),
    ("events", SEND): Told(True, f"{_DOCS}/eventbridge/latest/userguide/eb-use-resource-based.html"),
    ("events", KEY): Told(False, f"{_DOCS}/eventbridge/latest/userguide/eb-encryption-key-policy.html"),
    ("cloudwatch", PUBLISH): Told(True, f"{_DOCS}/sns/latest/dg/sns-access-policy-use-cases.html"),
    ("cloudwatch", KEY): Told(False, f"{_DOCS}/sns/latest/dg/sns-key-management.html"),
    ("budgets", PUBLISH): Told(True, _BUDGETS),
    ("budgets", KEY): Told(False, _BUDGETS),
    ("scheduler", TRUST): Told(
        True, f"{_DOCS}/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html"
    ),
    ("glue", TRUST): Told(False, f"{_DOCS}/glue/latest/dg/create-an-iam-role.html"),
    ("emr-serverless", TRUST): Told(
        False, f"{_DOCS}/emr/latest/EMR-Serverless-UserGuide/security-iam-runtime-role.html"
    ),
    ("chatbot", TRUST): Told(False, f"{_DOCS}/chatbot/latest/adminguide/chatbot-iam-policies.html"),
}
"""By service and use. EventBridge's page shows conditions for the key of an event bus, and not for that of a rule's target."""


def conditions(service: str, use: str, **asked: Mapping[str, Any]) -> dict[str, Any]:
    """`asked` by operator, such as `ArnLike`. `service` is with or without `.amazonaws.com`."""
    plain = TABLE[service.removesuffix(".amazonaws.com"), use].is_conditional
    return {operator if plain else f"{operator}IfExists": values for operator, values in asked.items()}


def markdown() -> str:
    """The table for readers."""
    lines = ["| service | what it does | conditions on its source | AWS's page |", "| --- | --- | --- | --- |"]
    for (service, use), one in TABLE.items():
        how = "asked for" if one.is_conditional else "with `IfExists`"
        lines.append(f"| `{service}` | {use} | {how} | [{one.source.rpartition('/')[2]}]({one.source}) |")
    return "\n".join(lines)
