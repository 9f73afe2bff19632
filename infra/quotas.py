"""Checks settings against AWS's quotas before anything is deployed. Pure.

In: settings. Out: sentences that say what is too much. `tests/infra/test_quotas.py` synthesizes a service of just this size and
holds its template to the quotas themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from forebay.counted import counted
from infra.forms import listed
from infra.settings import Settings

MOST_WATCHED = 150
"""A stack has 500 resources at most, and about 150 without them."""
MOST_CHARACTERS = 3000
"""A function's environment holds 4 KB in all."""
MOST_IN_A_TRUST = 1700
"""A role's trust policy has 2,048 characters. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"""
MOST_IN_A_STATEMENT = 5500
"""The CDK moves what an inline policy cannot hold into managed ones, of 6,144 characters, a whole statement at a time."""
AROUND_A_BUCKET = len('"arn:aws-us-gov:s3:::/*",')
MOST_IN_A_POLICY = 5000
"""Of the 6,144 characters of a bucket's policy; a queue's has 8,192.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-policies.html"""
MOST_IN_A_PARAMETER = 4500
"""Systems Manager keeps 8 KB at most; a job's definition takes 3."""
LENGTHS = {
    "landing_bucket": (MOST_CHARACTERS, "a function's environment"),
    "watched_tables": (MOST_CHARACTERS, "a function's environment"),
    "landing_topic": (MOST_IN_A_POLICY, "a queue's policy"),
    "landing_key": (MOST_IN_A_POLICY, "a role's policy"),
    "producer_accounts": (MOST_IN_A_POLICY, "a bucket's policy"),
    "analysts": (MOST_IN_A_TRUST, "a role's trust policy"),
    "operators": (MOST_IN_A_TRUST, "a role's trust policy"),
    "vault_users": (MOST_IN_A_TRUST, "a role's trust policy"),
}
OF_A_FUNCTION = {"vpc_subnets": (16, "subnet"), "vpc_security_groups": (5, "security group")}
"""https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-properties-lambda-function-vpcconfig.html"""


def beyond_quotas(settings: Settings) -> Iterator[str]:
    if (count := len(settings.watched)) > MOST_WATCHED:
        yield f"watched_tables names {counted(count, 'table')}; {MOST_WATCHED} fit into a stack, with two alarms for each"
    for name, (most, where) in LENGTHS.items():
        if (length := len(getattr(settings, name))) > most:
            yield f"{name} has {length:,} characters; {most:,} fit into {where}"
    for name, (most, what) in OF_A_FUNCTION.items():
        if (count := len(listed(getattr(settings, name)))) > most:
            yield f"{name} names {counted(count, what)}; a function takes {most} at most"
    buckets = listed(settings.landing_bucket)
    characters = sum(AROUND_A_BUCKET + len(bucket) + len(settings.landing_prefix) for bucket in buckets)
    if characters > MOST_IN_A_STATEMENT:
        yield f"landing_bucket and landing_prefix make {characters:,} characters of a policy; {MOST_IN_A_STATEMENT:,} fit"
    if settings.engine == "emr-serverless":
        yield from _beyond_a_parameter(settings, buckets)


def _beyond_a_parameter(settings: Settings, buckets: list[str]) -> Iterator[str]:
    """A parameter of Systems Manager has the definition of a job of EMR Serverless."""
    below = settings.reconcile_below or settings.landing_prefix
    length = sum(len(f"s3://{bucket}/{below},") for bucket in buckets) + len(settings.measured_tables)
    if length > MOST_IN_A_PARAMETER:
        yield (
            f"landing_bucket, reconcile_below and the measured tables make {length:,} characters; {MOST_IN_A_PARAMETER:,} fit "
            "into a parameter of Systems Manager"
        )
