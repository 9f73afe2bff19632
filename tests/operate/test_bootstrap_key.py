"""Doctor says which key of the CDK's bucket the jobs need, and whether CloudWatch Logs may use the service's own."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws

from forebay.operate.doctor.account import bootstrap_key
from forebay.operate.doctor.keys import logs_may_use_it
from forebay.operate.stack.deployment import Deployment

ACCOUNT, REGION = "123456789012", "eu-west-1"
BUCKET = f"cdk-hnb659fds-assets-{ACCOUNT}-{REGION}"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"


@pytest.mark.parametrize(
    ("by", "fixes"),
    [
        (None, []),
        ({"SSEAlgorithm": "AES256"}, []),
        ({"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY}, [f"deploy with -c assets_key={KEY}"]),
        ({"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": KEY[-36:]}, [f"deploy with -c assets_key={KEY}"]),
    ],
)
def test_a_key_of_the_cdks_bucket_is_named_with_the_setting_that_it_needs(
    monkeypatch: pytest.MonkeyPatch, by: Any, fixes: list[str]
) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        s3 = boto3.client("s3", region_name=REGION)
        if by:
            s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
            rules = {"Rules": [{"ApplyServerSideEncryptionByDefault": by}]}
            s3.put_bucket_encryption(Bucket=BUCKET, ServerSideEncryptionConfiguration=rules)
        on = Deployment(client=lambda _: s3, stack="forebay-dev", account=ACCOUNT, region=REGION)
        assert [found.fix for found in bootstrap_key(on)] == fixes


@pytest.mark.parametrize(
    ("region", "principal", "may"),
    [
        ("eu-west-1", "logs.eu-west-1.amazonaws.com", True),
        ("cn-north-1", "logs.cn-north-1.amazonaws.com.cn", True),
        ("eu-west-1", "logs.eu-west-2.amazonaws.com", False),
        ("eu-west-1", "sns.amazonaws.com", False),
    ],
)
def test_cloudwatch_logs_is_found_in_a_keys_policy_by_its_name_in_the_region(
    region: str, principal: str, may: bool
) -> None:
    statement = {"Effect": "Allow", "Principal": {"Service": principal}, "Action": "kms:*", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    on: Any = SimpleNamespace(partition="aws", region=region, account=ACCOUNT, name="forebay-dev")
    assert logs_may_use_it(on, policy) is may
