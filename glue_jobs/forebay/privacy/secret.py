"""The secret behind tokens: an object of 32 random bytes that tasks read themselves. It is in no argument, plan, log or metric.

In: its address, in S3 or on this machine. Out: the secret, read once for each process. `InvalidConfiguration` if it is missing,
or if the object is not a secret, and `Unreachable` if access is denied.
"""

from __future__ import annotations

import secrets
from base64 import b64decode, b64encode
from functools import lru_cache

from forebay.errors import InvalidConfiguration, Unreachable
from forebay.lake.objects import open_object

BYTES = 32
MARK = b"forebay token secret 1\n"
"""Before the secret, so that no other file is taken for one."""
MAKE = "restore it; for a new lake, `forebay privacy secret` makes one"


@lru_cache(maxsize=10)
def secret_at(address: str) -> bytes:
    try:
        objects, name = open_object(address)
        found = objects.read(name)
    except OSError as refused:
        raise Unreachable.one(address, f"cannot be read: {refused}") from refused
    if found is None:
        raise InvalidConfiguration.one(address, "holds no secret for tokens", MAKE)
    if not found.startswith(MARK) or len(secret := _decoded(found.removeprefix(MARK))) != BYTES:
        raise InvalidConfiguration.one(address, "does not hold a secret for tokens", MAKE)
    return secret


def make_secret(address: str) -> bool:
    """False where there is one, or something else: it stays. With another secret all tokens would be others."""
    objects, name = open_object(address)
    return objects.write_once(name, MARK + b64encode(secrets.token_bytes(BYTES)) + b"\n")


def _decoded(text: bytes) -> bytes:
    try:
        return b64decode(text.strip(), validate=True)
    except ValueError:
        return b""
