"""One way to make an AWS client, so that every one of them listens to the same environment.

boto3 by itself honours AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL_SQS, AWS_PROFILE and the credentials chain,
but of the region only AWS_DEFAULT_REGION; Spark, Lambda and every other SDK take AWS_REGION.
"""

from __future__ import annotations

import os
from typing import Any

__all__ = ["client"]


def client(service: str, **more: Any) -> Any:
    """A boto3 client; `more` goes to boto3."""
    import boto3

    return boto3.client(service, region_name=os.environ.get("AWS_REGION") or None, **more)
