"""boto3 clients of one twin, whatever the environment says: nothing of the twin may ever ask a real account."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

__all__ = ["ACCESS_KEY", "client"]

ACCESS_KEY = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}


@lru_cache(maxsize=64)  # clients are safe to share, and dear to make
def client(service: str, endpoint: str, region: str) -> Any:
    import boto3
    from botocore.config import Config

    # A message received in a lost answer would wait for its visibility to run out, hence a patient read.
    config = Config(connect_timeout=5, read_timeout=60, max_pool_connections=32, s3={"addressing_style": "path"})
    keys = {name.lower(): value for name, value in ACCESS_KEY.items()}
    return boto3.session.Session(region_name=region, **keys).client(service, endpoint_url=endpoint, config=config)
