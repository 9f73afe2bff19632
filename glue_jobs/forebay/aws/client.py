"""One way to make an AWS client, so that every one of them listens to the same environment and says who asks.

boto3 by itself honours AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL_SQS, AWS_PROFILE and the credentials chain,
but of the region only AWS_DEFAULT_REGION; Spark, Lambda and every other SDK take AWS_REGION.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botocore.config import Config

__all__ = ["USER_AGENT", "client"]

USER_AGENT = "forebay"
"""What CloudTrail shows beside the SDK's own name."""


def client(service: str, *, region: str | None = None, config: Config | None = None, **more: Any) -> Any:
    """A boto3 client, in `region` or the environment's; `more` goes to boto3."""
    import boto3
    from botocore.config import Config

    named = Config(user_agent_extra=USER_AGENT)
    return boto3.client(
        service,
        region_name=region or os.environ.get("AWS_REGION") or None,
        config=named.merge(config) if config else named,
        **more,
    )
