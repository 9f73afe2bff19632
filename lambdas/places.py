"""The place of an object. In: a folder of S3, `s3://bucket/prefix`, and a name in it. Out: boto3's arguments."""

from __future__ import annotations

from forebay.address import bucket_and_key


def place_of(folder: str, name: str) -> dict[str, str]:
    bucket, prefix = bucket_and_key(folder)
    return {"Bucket": bucket, "Key": f"{prefix}/{name}".lstrip("/")}
