"""boto3 clients of one twin, whatever the environment says: nothing of the twin may ever ask a real account.

Who asks is told by the access key: it is the name of a role, whose policies then decide (see `rights`), or `local`, a person
at this machine, who may do everything.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

__all__ = ["ACCESS_KEY", "A_PERSON", "access_key", "client", "role_of"]

A_PERSON = "local"


def access_key(who: str) -> dict[str, str]:
    """As environment variables."""
    return {"AWS_ACCESS_KEY_ID": who, "AWS_SECRET_ACCESS_KEY": "local"}


ACCESS_KEY = access_key(A_PERSON)


def role_of(arn_or_name: str) -> str:
    return arn_or_name.rpartition("/")[2]


@lru_cache(maxsize=64)  # clients are safe to share, and dear to make
def client(service: str, endpoint: str, region: str, who: str = A_PERSON) -> Any:
    import boto3
    from botocore.config import Config

    # A message received in a lost answer would wait for its visibility to run out, hence a patient read.
    config = Config(connect_timeout=5, read_timeout=60, max_pool_connections=32, s3={"addressing_style": "path"})
    keys = {name.lower(): value for name, value in access_key(who).items()}
    return boto3.session.Session(region_name=region, **keys).client(service, endpoint_url=endpoint, config=config)
