"""One way to make an AWS client: all of them read the same environment and identify themselves as forebay.

boto3 honours AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL_SQS, AWS_PROFILE and the credentials chain. For the
region it reads only AWS_DEFAULT_REGION, but Spark, Lambda and every other SDK read AWS_REGION.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from forebay.address import region_of_queue

if TYPE_CHECKING:
    from botocore.config import Config

USER_AGENT = "forebay"
"""CloudTrail shows it beside the SDK's own name."""


_DECIDES = (
    "AWS_PROFILE",
    "AWS_ACCESS_KEY_ID",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
)
"""The environment variables that a session reads when it is created."""


def session() -> Any:
    """boto3's session for the current environment: region, profile, and the chain of credentials."""
    return _session(tuple(os.environ.get(name) for name in _DECIDES))


def client(service: str, *, region: str | None = None, config: Config | None = None, **more: Any) -> Any:
    """A boto3 client, in `region` or the environment's; `more` goes to boto3."""
    from botocore.config import Config

    named = Config(user_agent_extra=USER_AGENT)
    return session().client(service, region_name=region, config=named.merge(config) if config else named, **more)


def queue_client(url: str, **more: Any) -> Any:
    """A client for this queue, in the region that its URL names; without one, in the environment's."""
    return client("sqs", region=region_of_queue(url), **more)


@lru_cache(4)
def _session(environment: tuple[str | None, ...]) -> Any:
    """One for all clients: a role is assumed once, and its credentials are renewed in one place."""
    import boto3

    return boto3.Session(region_name=os.environ.get("AWS_REGION") or None)
