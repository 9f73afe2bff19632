"""The values that a vault holds of a person, decrypted, with the place of each. The caller must be able to use the vault's key.

In: a subject, as itself or as its token, and the declarations. Out: its values, oldest first. A subject that the vault does
not know gives an empty answer. A value that this account may not read or decrypt is `InvalidConfiguration`, and so is
another secret than that of the lake; a row that was changed since is `Halt`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from forebay.declaration.privacy import Privacy
from forebay.declaration.service import Service
from forebay.errors import Halt, InvalidConfiguration
from forebay.lake.layout import LEDGER
from forebay.operate.lake_view import LakeView, quoted
from forebay.privacy.keys import vault_key
from forebay.privacy.known_secret import must_be_known_secret
from forebay.privacy.secret import secret_at
from forebay.privacy.token import token_of
from forebay.privacy.vault import VALUES, data_key, unpacked, value_data
from forebay.privacy.wrapping import opened

NONCE_BYTES = 12
ASKED_AT_ONCE = 100


@dataclass(frozen=True)
class VaultValue:
    """`value` is as the file had it."""

    path: str
    value: Any
    file: str
    byte_offset: int
    at: datetime


def vaulted(service: Service) -> Privacy:
    """The privacy of the service, if it has a vault."""
    if service.privacy is None or not service.privacy.vault:
        raise InvalidConfiguration.one("privacy", "no vault is declared", "[privacy] vault and vault_key name one")
    return service.privacy


def vault_values(view: LakeView, service: Service, subject: str) -> list[VaultValue]:
    declared = vaulted(service)
    must_be_known_secret(view.lake, service)
    token = token_of(subject, secret_at(declared.secret))
    key = vault_key(declared.vault_key)
    wanted = f"service = {quoted(service.name)} and array_has(subjects, {quoted(token)})"
    rows = LakeView(declared.vault).query(VALUES, f"select * from t where {wanted} order by at, file_id, byte_offset")
    wrapping = lru_cache(maxsize=None)(lambda name: opened(declared.vault, name, key))
    files = _files(view, {row["file_id"] for row in rows})
    return [
        VaultValue(path, value, files.get(row["file_id"], row["file_id"]), row["byte_offset"], row["at"])
        for row in rows
        for path, value in _values(row, wrapping(row["key_id"]))
    ]


def known_to_vault(service: Service, tokens: Collection[str]) -> set[str]:
    """The subjects that the vault knows. If no vault is declared, it knows nobody."""
    found: set[str] = set()
    for vault, some in _asked(service, tokens):
        rows = vault.query(VALUES, f"select distinct unnest(subjects) as subject from t where {_of(service, some)}")
        found |= {row["subject"] for row in rows}
    return found & set(tokens)


def _asked(service: Service, tokens: Collection[str]) -> Iterator[tuple[LakeView, list[str]]]:
    if service.privacy is not None and service.privacy.vault:
        vault, ordered = LakeView(service.privacy.vault), sorted(tokens)
        yield from ((vault, ordered[at : at + ASKED_AT_ONCE]) for at in range(0, len(ordered), ASKED_AT_ONCE))


def _of(service: Service, tokens: Collection[str]) -> str:
    named = " or ".join(f"array_has(subjects, {quoted(token)})" for token in tokens)
    return f"service = {quoted(service.name)} and ({named})"


def _values(row: dict[str, Any], wrapping: bytes) -> list[tuple[str, Any]]:
    key = data_key(wrapping, row["salt"], row["subjects"])
    return unpacked(_decrypted(row["content"], key, value_data(row["service"], row["key_id"])).decode())


def _decrypted(content: bytes, key: bytes, data: str) -> bytes:
    try:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ModuleNotFoundError as missing:
        raise InvalidConfiguration.one("cryptography", "is not installed", "pip install cryptography") from missing
    try:
        return AESGCM(key).decrypt(content[:NONCE_BYTES], content[NONCE_BYTES:], data.encode())
    except InvalidTag as changed:
        raise Halt(f"the vault's value for {data} is not the one that was written") from changed


def _files(view: LakeView, file_ids: set[str]) -> dict[str, str]:
    """Their addresses, of those that the ledger knows."""
    rows = view.rows_with(LEDGER, "file_id, bucket, key", "file_id", file_ids)
    return {row["file_id"]: f"s3://{row['bucket']}/{row['key']}" for row in rows}
