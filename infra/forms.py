"""The valid texts of settings: one type each, with the message that refuses others."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator

from forebay.capacity.freshness import checked


def listed(text: str) -> list[str]:
    """The items of a comma-separated list."""
    return [one for one in text.split(",") if one]


def words(pattern: str, expected: str) -> Any:
    def check(value: Any) -> Any:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(f"must be {expected}")
        return value

    return BeforeValidator(check)


def several(one: str) -> str:
    return f"(|{one}(,{one})*)"


EnvName = Annotated[str, words(r"[a-z][a-z0-9]{0,9}", "a lowercase letter, then up to 9 lowercase letters or digits")]
Prefix = Annotated[
    str,
    words(
        r"(|(?!xn--|(sthree|amzn-s3-demo)(-|$))[a-z][a-z0-9-]{0,23}[a-z0-9])",
        "3 to 25 lowercase letters, digits or -, such as forebay-eu; xn--, sthree- and amzn-s3-demo- begin no bucket's name",
    ),
]
"""With -artefacts-123456789012-ap-southeast-2 it makes the longest name that a bucket may have, of 63 characters."""
_BUCKET = (
    r"(?!xn--|sthree-|amzn-s3-demo-|[^,]*\.\.|\d+\.\d+\.\d+\.\d+(,|$))"
    r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?<!-s3alias)(?<!--ol-s3)(?<!--x-s3)(?<!\.mrap)"
)
_TOPIC = r"arn:[\w-]+:sns:[\w-]+:\d{12}:[\w.-]+"
_KEY = r"arn:[\w-]+:kms:[\w-]+:\d{12}:key/([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})"
"""https://docs.aws.amazon.com/kms/latest/developerguide/concepts.html#key-id-key-id"""
Bucket = Annotated[str, words(f"(|{_BUCKET})", "a bucket's name")]
Buckets = Annotated[str, words(several(_BUCKET), "a bucket's name, or a comma-separated list")]
TopicArns = Annotated[str, words(several(_TOPIC), "the ARN of an SNS topic, or a comma-separated list")]
QueueArn = Annotated[str, words(r"(|arn:[\w-]+:sqs:[\w-]+:\d{12}:[\w-]+)", "the ARN of an SQS queue")]
KeyArn = Annotated[str, words(f"(|{_KEY})", "the ARN of a KMS key")]
KeyArns = Annotated[str, words(several(_KEY), "the ARN of a KMS key, or a comma-separated list")]
Accounts = Annotated[str, words(several(r"\d{12}"), "numbers of AWS accounts, comma-separated")]
PolicyArn = Annotated[str, words(r"(|arn:[\w-]+:iam::(\d{12}|aws):policy/[\w+=,.@/-]+)", "the ARN of a managed policy")]
Release = Annotated[str, words(r"emr-[a-z0-9-]+\.\d+\.\d+", "a release of EMR, such as emr-spark-8.1.0")]
_IN_A_KEY = r"[^*?${}\"\\\s]"
"""No wildcard or variable of policies, and nothing that a filter of S3 wants to be encoded."""
Folder = Annotated[
    str,
    words(
        rf"(|(?!/){_IN_A_KEY}+/)",
        "empty, or a key prefix that ends with /, such as in/; without * ? $ { }, quotes, backslashes and spaces",
    ),
]
FolderOfLake = Annotated[
    str,
    words(r"(|([A-Za-z0-9][\w.=-]*/)+)", "empty, or names that each end with /, such as games/ or games/eu/"),
]
Freshness = Annotated[str, BeforeValidator(checked)]
Database = Annotated[str, words(r"(|[a-z0-9_]{1,255})", "the name of a Glue database: lowercase letters, digits and _")]
RolePrefix = Annotated[str, words(r"(|[\w+=,.@-]{1,40})", "what names of roles begin with, such as studio-forebay-")]
_ID = r"[0-9a-f]{8}([0-9a-f]{9})?"
"""The ids of EC2's resources."""
_SUBNET = rf"subnet-{_ID}:[a-z]+(-[a-z]+)+-\d[a-z]"
Subnets = Annotated[
    str, words(several(_SUBNET), "subnets with their zones, comma-separated, such as subnet-0a1b2c3d:eu-west-1a")
]
SecurityGroups = Annotated[str, words(several(f"sg-{_ID}"), "security groups, comma-separated, such as sg-0a1b2c3d")]
Vpc = Annotated[str, words(f"(|vpc-{_ID})", "a VPC, such as vpc-0a1b2c3d")]
RouteTables = Annotated[str, words(several(f"rtb-{_ID}"), "route tables, comma-separated, such as rtb-0a1b2c3d")]
_PRINCIPAL = r"arn:[\w-]+:iam::\d{12}:(root|(role|user)/[\w+=.@/-]+)"
Principals = Annotated[str, words(several(_PRINCIPAL), "ARNs of IAM roles, users or accounts (:root), comma-separated")]
Email = Annotated[str, words(r"(|[^@\s]+@[^@\s]+)", "an e-mail address")]
Url = Annotated[str, words(r"(|https://[^\s/]+\S*)", "an address that begins with https://")]
Slack = Annotated[str, words(r"(|T[A-Z0-9]{7,}/[CG][A-Z0-9]{7,})", "such as T01234567/C0123456789")]
Names = Annotated[str, words(r"(|\w+(,\w+)*)", "names, comma-separated, such as pixelfarm,voxelkart")]
TableNames = Annotated[str, words(r"(|\*|\w+(,\w+)*)", "names, comma-separated, or *")]
Window = Annotated[
    str, words(r"(|(Mon|Tue|Wed|Thu|Fri|Sat|Sun):([0-9]|1[0-9]|2[0-3]))", "a day and hour in UTC, such as Sun:2")
]
