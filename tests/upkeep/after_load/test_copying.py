"""A copy has all that the object has, whatever its size, and is there whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from forebay.upkeep.after_load import copying

PLACE = {"Bucket": "archive", "Key": "old/a.json"}
MB = 1 << 20


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Objects of more than 1 MB are large here. Parts have at least 5 MB in S3, too."""
    monkeypatch.setattr(copying, "LARGEST_COPY", MB)
    monkeypatch.setattr(copying, "PART", 5 * MB)
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    with mock_aws():
        s3 = boto3.client("s3", "us-east-1", aws_access_key_id="AK", aws_secret_access_key="SK")
        for bucket in ("landing", "archive"):
            s3.create_bucket(Bucket=bucket)
        yield s3


def copied(s3: Any, size: int) -> dict[str, Any]:
    body = bytes(range(256)) * (size // 256)
    more = {
        "Metadata": {"game": "alpha"},
        "ContentType": "application/json",
        "Tagging": "team=a%2Bb%20%3D%20c&stage=raw",
    }
    s3.put_object(Bucket="landing", Key="a.json", Body=body, **more)
    copying.copy(s3, {"Bucket": "landing", "Key": "a.json"}, s3.head_object(Bucket="landing", Key="a.json"), **place())
    found: dict[str, Any] = s3.get_object(**PLACE)
    assert found["Body"].read() == body
    tags = {tag["Key"]: tag["Value"] for tag in s3.get_object_tagging(**PLACE)["TagSet"]}
    return {"metadata": found["Metadata"], "type": found["ContentType"], "tags": tags}


def place() -> dict[str, str]:
    return {"bucket": PLACE["Bucket"], "key": PLACE["Key"]}


def test_a_large_copy_is_like_a_small_one(s3: Any) -> None:
    small = copied(s3, MB)
    assert small == {
        "metadata": {"game": "alpha"},
        "type": "application/json",
        "tags": {"team": "a+b = c", "stage": "raw"},
    }
    assert copied(s3, 12 * MB) == small


def test_of_an_object_that_changes_midway_nothing_is_left(s3: Any) -> None:
    s3.put_object(Bucket="landing", Key="a.json", Body=b"1" * 12 * MB)
    head, asked = s3.head_object(Bucket="landing", Key="a.json"), list[dict[str, Any]]()

    class Changing:
        """moto does not look at the condition of a part."""

        def __getattr__(self, name: str) -> Any:
            return getattr(s3, name)

        def upload_part_copy(self, **request: Any) -> Any:
            asked.append(request)
            if request["PartNumber"] == 2:
                said: Any = {"Error": {"Code": "PreconditionFailed"}, "ResponseMetadata": {"HTTPStatusCode": 412}}
                raise ClientError(said, "UploadPartCopy")
            return s3.upload_part_copy(**request)

    with pytest.raises(ClientError, match="PreconditionFailed"):
        copying.copy(Changing(), {"Bucket": "landing", "Key": "a.json"}, head, **place())
    assert {one["CopySourceIfMatch"] for one in asked} == {head["ETag"]}
    assert s3.list_objects_v2(Bucket="archive").get("Contents") is None
    assert s3.list_multipart_uploads(Bucket="archive").get("Uploads") is None
