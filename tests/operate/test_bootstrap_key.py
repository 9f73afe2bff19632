"""Before a deployment doctor says which key of the CDK's bucket the jobs need."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from moto import mock_aws

from forebay.operate.doctor.account import bootstrap_key
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
