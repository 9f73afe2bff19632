"""boto3 clients of one twin, whatever the environment says: nothing of the twin may ever ask a real account.

An access key id has the caller and its secret: `who~key`. `who` is the name of a role, whose policies then decide (see
`rights`), or `local`, a person at this machine, who may do everything. `key` is a secret that the twin was started with; the
door answers nobody without it. A process knows the keys of the twins that it started or found, by their endpoints.
"""

from __future__ import annotations

import secrets
from functools import lru_cache
from typing import Any

A_PERSON = "local"
KEY = "FOREBAY_TWIN_KEY"
"""The environment variable that tells a server its key. A command line is visible to every user of the machine."""
BETWEEN = "~"
"""In no name of a role, and in no key."""

_keys: dict[str, str] = {}


def new_key() -> str:
    return secrets.token_hex(16)


def know(endpoint: str, key: str) -> None:
    """From now on this process may ask the twin at this endpoint."""
    _keys[endpoint] = key


def access_key(who: str, *endpoints: str) -> dict[str, str]:
    """As environment variables, for the twins at these endpoints."""
    return {"AWS_ACCESS_KEY_ID": _access_key_id(who, *endpoints), "AWS_SECRET_ACCESS_KEY": "local"}


def who_of(access_key_id: str) -> str:
    return access_key_id.partition(BETWEEN)[0]


def keys_in(access_key_id: str) -> list[str]:
    return access_key_id.split(BETWEEN)


def role_of(arn_or_name: str) -> str:
    return arn_or_name.rpartition("/")[2]


def client(service: str, endpoint: str, region: str, who: str = A_PERSON) -> Any:
    return _client(service, endpoint, region, _access_key_id(who, endpoint))


def _access_key_id(who: str, *endpoints: str) -> str:
    return BETWEEN.join([who, *(_keys[endpoint] for endpoint in endpoints if endpoint in _keys)])


@lru_cache(maxsize=64)  # clients are safe to share, and dear to make
def _client(service: str, endpoint: str, region: str, access_key_id: str) -> Any:
    import boto3
    from botocore.config import Config

    # A message received in a lost answer would wait for its visibility to run out, hence a patient read.
    config = Config(connect_timeout=5, read_timeout=60, max_pool_connections=32, s3={"addressing_style": "path"})
    session = boto3.session.Session(access_key_id, "local", region_name=region)
    return session.client(service, endpoint_url=endpoint, config=config)
