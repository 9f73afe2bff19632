"""The key of a vault: it encrypts wrapping keys, and nothing else. A KMS key never leaves KMS; a file serves one machine.

In: the declared key, and the id of a wrapping key. Out: wrapping keys, plain and encrypted. Both providers behave alike. A
missing or denied key is `InvalidConfiguration`; a KMS that cannot answer now is `Halt`.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from forebay.aws.client import client
from forebay.errors import Halt, InvalidConfiguration
from forebay.lake.objects import open_object

KEY_BYTES = 32
NONCE_BYTES, TAG_BYTES = 16, 16
PERSONS_MAY_MEND = frozenset(
    {"AccessDeniedException", "NotFoundException", "DisabledException", "InvalidCiphertextException"}
    | {"IncorrectKeyException", "KMSInvalidStateException", "UnrecognizedClientException"}
)
MARK = b"forebay vault key 1\n"
"""Before the keys of a file, so that no other file is taken for one. The last one is in use."""


class VaultKey(Protocol):
    """`name` is bound to what is encrypted: under another name nobody decrypts it."""

    def made(self, name: str) -> tuple[bytes, bytes]:
        """A new wrapping key: plain, and encrypted."""

    def decrypted(self, wrapped: bytes, name: str) -> bytes: ...

    def encrypted_again(self, wrapped: bytes, name: str) -> bytes:
        """Encrypts it again with the current version of the key."""


def is_local(key: str) -> bool:
    return key.startswith(("/", "file:/"))


def vault_key(key: str) -> VaultKey:
    return LocalKey(key) if is_local(key) else KmsKey(key, _kms_of(key))


def _kms_of(key: str) -> Any:
    """Tasks ask once an hour, so they may wait out a throttling."""
    region = key.split(":")[3] if key.startswith("arn:") else None
    return client("kms", region=region, config=Config(retries={"mode": "standard", "max_attempts": 8}))


@dataclass(frozen=True)
class KmsKey:
    """`key` is an ARN or an alias. A role with kms:GenerateDataKey alone cannot decrypt the keys of others."""

    key: str
    kms: Any

    def made(self, name: str) -> tuple[bytes, bytes]:
        with self._refusals("make a key with"):
            made = self.kms.generate_data_key(KeyId=self.key, KeySpec="AES_256", EncryptionContext=_context(name))
        return made["Plaintext"], made["CiphertextBlob"]

    def decrypted(self, wrapped: bytes, name: str) -> bytes:
        with self._refusals("decrypt with"):
            answer = self.kms.decrypt(CiphertextBlob=wrapped, EncryptionContext=_context(name))
        plain: bytes = answer["Plaintext"]
        return plain

    def encrypted_again(self, wrapped: bytes, name: str) -> bytes:
        """KMS does it within: nothing plain comes here."""
        context = _context(name)
        with self._refusals("encrypt with"):
            answer = self.kms.re_encrypt(
                CiphertextBlob=wrapped,
                DestinationKeyId=self.key,
                SourceEncryptionContext=context,
                DestinationEncryptionContext=context,
            )
        again: bytes = answer["CiphertextBlob"]
        return again

    @contextmanager
    def _refusals(self, action: str) -> Iterator[None]:
        try:
            yield
        except ClientError as refused:
            code = refused.response.get("Error", {}).get("Code", "")
            if code in PERSONS_MAY_MEND:
                raise InvalidConfiguration.one(f"vault_key {self.key}", f"cannot {action} it: {refused}") from refused
            raise Halt(f"cannot {action} {self.key}: {refused}; nothing was lost, run it again") from refused
        except BotoCoreError as refused:
            raise Halt(f"cannot {action} {self.key}: {refused}; nothing was lost, run it again") from refused


def _context(name: str) -> dict[str, str]:
    return {"forebay": "vault", "wrapping-key": name}


@dataclass(frozen=True)
class LocalKey:
    """Keys in a file of this machine. 32 bytes are hidden by 32 of HMAC-SHA256, which no other name and nonce give again."""

    place: str

    def made(self, name: str) -> tuple[bytes, bytes]:
        plain = secrets.token_bytes(KEY_BYTES)
        return plain, self._encrypted(plain, name)

    def decrypted(self, wrapped: bytes, name: str) -> bytes:
        nonce, hidden, tag = (
            wrapped[:NONCE_BYTES],
            wrapped[NONCE_BYTES:-TAG_BYTES],
            wrapped[-TAG_BYTES:],
        )
        for key in reversed(self._keys()):
            if hmac.compare_digest(tag, _tag(key, name, nonce + hidden)):
                return _hidden(key, name, nonce, hidden)
        raise InvalidConfiguration.one(f"vault_key {self.place}", f"has no key that decrypts the wrapping key {name}")

    def encrypted_again(self, wrapped: bytes, name: str) -> bytes:
        return self._encrypted(self.decrypted(wrapped, name), name)

    def _encrypted(self, plain: bytes, name: str) -> bytes:
        key, nonce = self._keys()[-1], secrets.token_bytes(NONCE_BYTES)
        hidden = nonce + _hidden(key, name, nonce, plain)
        return hidden + _tag(key, name, hidden)

    def _keys(self) -> list[bytes]:
        objects, name = open_object(self.place)
        keys = _keys_of(objects.read(name) or b"")
        if not keys:
            raise InvalidConfiguration.one(
                f"vault_key {self.place}", "has no vault key", "`forebay privacy rotate` makes one"
            )
        return keys


def add_local_key(place: str) -> None:
    """A new one, to be used from now on. Earlier ones stay, for what they encrypted."""
    objects, name = open_object(place)
    before = objects.read(name) or MARK
    if before != MARK and not _keys_of(before):
        raise InvalidConfiguration.one(f"vault_key {place}", "does not hold vault keys")
    objects.write(name, before + b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")


def _keys_of(content: bytes) -> list[bytes]:
    if not content.startswith(MARK):
        return []
    try:
        keys = [b64decode(line, validate=True) for line in content.removeprefix(MARK).split()]
    except ValueError:
        return []
    return keys if all(len(key) == KEY_BYTES for key in keys) else []


def _hidden(key: bytes, name: str, nonce: bytes, content: bytes) -> bytes:
    stream = hmac.digest(key, b"hide\0" + nonce + name.encode(), "sha256")
    return bytes(a ^ b for a, b in zip(content, stream, strict=True))


def _tag(key: bytes, name: str, content: bytes) -> bytes:
    return hmac.digest(key, b"tag\0" + content + name.encode(), "sha256")[:TAG_BYTES]
