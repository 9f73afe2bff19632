"""Copies one object, whole or not at all, and only while it is still the same.

In: an object as a HEAD described it, and a place. Out: the object there, with its metadata and tags; or S3's refusal. S3 copies
5 GiB in one request. A larger object is copied in parts, each on the same condition, and appears once all are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from botocore.exceptions import BotoCoreError, ClientError

LARGEST_COPY = 5 << 30
PART = 512 << 20
"""Bytes of a part: S3 copies it in seconds, and takes 10,000 of them."""
KEPT = ("CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage", "ContentType", "Metadata")


def copy(s3: Any, source: Mapping[str, str], head: Mapping[str, Any], bucket: str, key: str) -> None:
    """`source` is boto3's `CopySource`. Run again, it writes the same object."""
    if head["ContentLength"] > LARGEST_COPY:
        _copy_in_parts(s3, source, head, {"Bucket": bucket, "Key": key})
    else:
        s3.copy_object(CopySource=source, CopySourceIfMatch=head["ETag"], Bucket=bucket, Key=key)


def _copy_in_parts(s3: Any, source: Mapping[str, str], head: Mapping[str, Any], place: dict[str, str]) -> None:
    kept = {name: head[name] for name in KEPT if head.get(name)}
    begun = s3.create_multipart_upload(**place, **kept, **_tags(s3, source, head))
    upload, size = {**place, "UploadId": begun["UploadId"]}, head["ContentLength"]
    try:
        parts = []
        for number, start in enumerate(range(0, size, PART), 1):
            piece = {"PartNumber": number, "CopySourceRange": f"bytes={start}-{min(start + PART, size) - 1}"}
            copied = s3.upload_part_copy(CopySource=source, CopySourceIfMatch=head["ETag"], **upload, **piece)
            parts.append({"PartNumber": number, "ETag": copied["CopyPartResult"]["ETag"]})
        s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    except (ClientError, BotoCoreError):
        with suppress(ClientError, BotoCoreError):  # the first failure says more
            s3.abort_multipart_upload(**upload)
        raise


def _tags(s3: Any, source: Mapping[str, str], head: Mapping[str, Any]) -> dict[str, str]:
    if not head.get("TagCount"):
        return {}
    return {"Tagging": urlencode({tag["Key"]: tag["Value"] for tag in s3.get_object_tagging(**source)["TagSet"]})}
