"""Where an object is: in a folder of S3, `s3://bucket/prefix`. In: the folder, and what is in it. Out: what boto3 asks for."""

from __future__ import annotations

from forebay.address import bucket_and_key

__all__ = ["place_of"]


def place_of(folder: str, name: str) -> dict[str, str]:
    bucket, prefix = bucket_and_key(folder)
    return {"Bucket": bucket, "Key": f"{prefix}/{name}".lstrip("/")}
