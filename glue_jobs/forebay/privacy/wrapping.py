"""Wrapping keys: a task makes data keys from one for an hour, and stores it, encrypted, before anything that needs it.

In: a vault and the declared key. Out: wrapping keys. A stored key that a task never used is harmless. After an interruption,
`encrypt_again` resumes.
"""

from __future__ import annotations

import json
import secrets
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock

from forebay.errors import Halt
from forebay.lake.objects import Objects, open_objects
from forebay.privacy.keys import VaultKey, vault_key
from forebay.privacy.vault import data_key, wrapping_of

LASTS_S = 3600
"""How long a process uses one wrapping key: each process calls KMS once an hour."""
SALT_BYTES = 16
MOST_SUBJECTS = 100_000
ROTATION = "rotation.json"


@dataclass
class WrappingKey:
    """Plain, in the memory of one process, which it never leaves. `data_keys` are those that it gave, with their salts: one for
    each set of subjects."""

    name: str
    plain: bytes = field(repr=False)
    until: float
    data_keys: dict[tuple[str, ...], tuple[bytes, bytes]] = field(default_factory=dict, repr=False)

    def data_key(self, subjects: tuple[str, ...]) -> tuple[bytes, bytes]:
        """With its salt."""
        found = self.data_keys.get(subjects)
        if found is None:
            if len(self.data_keys) >= MOST_SUBJECTS:
                self.data_keys.clear()
            salt = secrets.token_bytes(SALT_BYTES)
            found = self.data_keys[subjects] = data_key(self.plain, salt, subjects), salt
        return found


_OF_THIS_PROCESS: dict[tuple[str, str], WrappingKey] = {}
_MAKING = Lock()


def wrapping_key(vault: str, key: str) -> WrappingKey:
    """The one that this process uses now."""
    with _MAKING:
        found = _OF_THIS_PROCESS.get((vault, key))
        if found is None or found.until < time.monotonic():
            found = _OF_THIS_PROCESS[vault, key] = _made(vault, vault_key(key))
    return found


def _made(vault: str, key: VaultKey) -> WrappingKey:
    name = secrets.token_hex(16)
    plain, wrapped = key.made(name)
    open_objects(wrapping_of(vault)).write(f"{name}.json", _as_json(wrapped, 0))
    return WrappingKey(name, plain, time.monotonic() + LASTS_S)


def opened(vault: str, name: str, key: VaultKey) -> bytes:
    """A wrapping key, decrypted; only for who may decrypt what the vault holds."""
    found = open_objects(wrapping_of(vault)).read(f"{name}.json")
    if found is None:
        raise Halt(f"{wrapping_of(vault)}/{name}.json is missing, and the data that its keys encrypted is lost")
    return key.decrypted(_wrapped(found), name)


def encrypt_again(vault: str, key: VaultKey, at: datetime) -> Iterator[int]:
    """Encrypts all wrapping keys that existed at the start with the current key; yields how many are done so far."""
    objects = open_objects(wrapping_of(vault))
    plans = open_objects(vault)
    began = _begin(plans, at)
    done = 0
    for found in objects.found():
        if found.name.endswith(".json") and _again(objects, found.name, key, began):
            done += 1
            yield done
    plans.delete([ROTATION])


def is_interrupted(vault: str) -> bool:
    return open_objects(vault).read(ROTATION) is not None


def _begin(plans: Objects, at: datetime) -> int:
    """The number of this rotation, in milliseconds; of the one that was interrupted, if one was."""
    number = int(at.timestamp() * 1000)
    if plans.write_over(ROTATION, json.dumps({"number": number}).encode(), None):
        return number
    found = plans.read(ROTATION)
    return number if found is None else int(json.loads(found)["number"])


def _again(objects: Objects, name: str, key: VaultKey, began: int) -> bool:
    """False where this rotation has done it already. The number of an earlier one says nothing, because its clock was
    perhaps ahead. Two who rotate at once do no harm: both write the same key."""
    found = objects.read_tagged(name)
    if found is None or json.loads(found[0])["rotation"] == began:
        return False
    wrapped = key.encrypted_again(_wrapped(found[0]), name.removesuffix(".json"))
    return objects.write_over(name, _as_json(wrapped, began), found[1])


def _as_json(wrapped: bytes, rotation: int) -> bytes:
    return json.dumps({"wrapped": b64encode(wrapped).decode(), "rotation": rotation}).encode()


def _wrapped(content: bytes) -> bytes:
    return b64decode(json.loads(content)["wrapped"])
