"""The vault: the original personal values, encrypted, at a place apart from the lake.

In: the address of a vault. Out: all its paths. It has one table, and one object for each wrapping key:

* `values`, a Delta table: one row for each record that has personal values and a subject. The wrapping key `key_id` and `salt`
  give the data key of its subjects; `content` are the values, encrypted by that. Its destination and later retries change
  nothing here: `file_id` and `byte_offset` identify it.
* `wrapping/<key_id>.json`: a wrapping key, encrypted by the key that the declarations name (`keys`).

An erasure deletes the rows of `values` whose `subjects` have the person's token, with salt and values, and removes the data
files that held them.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from forebay.address import overlap
from forebay.declaration.privacy import Privacy
from forebay.errors import InvalidConfiguration
from forebay.lake.layout import VAULT, table_path
from forebay.privacy.keys import is_local

VALUES = "values"
WRAPPING = "wrapping"

COLUMNS = (
    "day date, at timestamp, service string, generation string, batch long, file_id string, byte_offset long, "
    "subjects array<string>, key_id string, salt binary, content binary"
)
"""`subjects` are tokens (`subject.subject_tokens`), mostly one. `content` is 12 bytes of nonce, the ciphertext, and 16 bytes of
tag: AES-256-GCM. Decrypted it is `packed`."""


def must_lie_apart(privacy: Privacy | None, lake: str) -> None:
    """Readers of the lake must not be able to read the vault, its keys, or the secret of tokens."""
    if privacy is None:
        return
    keys = {"vault_key": privacy.vault_key} if is_local(privacy.vault_key) else {}
    for name, place in {"vault": privacy.vault, "secret": privacy.secret, **keys}.items():
        if place and overlap(place, lake):
            raise InvalidConfiguration.one(
                f"privacy.{name}",
                f"{place} is in the lake {lake}, or around it",
                "name a place that readers of the lake cannot read",
            )


def values_of(vault: str) -> str:
    """The address of the table."""
    return f"{vault.rstrip('/')}/{VALUES}"


def place_of(name: str, lake: str, vault: str) -> str:
    """The folder of a table that a batch writes."""
    return values_of(vault) if name == VAULT else table_path(lake, name)


def wrapping_of(vault: str) -> str:
    """The folder of the wrapping keys."""
    return f"{vault.rstrip('/')}/{WRAPPING}"


def value_data(service: str, key_id: str) -> str:
    """GCM's associated data of values. It does not include the table, which is not known yet when a value is encrypted, and a
    retried record may go to another one."""
    return f"values/{service}/{key_id}"


def data_key(wrapping: bytes, salt: bytes, subjects: Iterable[str]) -> bytes:
    """The data key of these subjects alone. It needs both the wrapping key and the salt: HMAC-SHA256 as a KDF."""
    return hmac.digest(wrapping, b"data key\0" + salt + " ".join(subjects).encode(), "sha256")


def packed(originals: Iterable[tuple[str, str]]) -> str:
    """Values with their paths, as the declarations have these, joined by dots. A value is the JSON text of the record."""
    return "[" + ",".join(f"{labelled(path)}{value}]" for path, value in originals) + "]"


def unpacked(content: str) -> list[tuple[str, Any]]:
    return [(path, value) for path, value in json.loads(content, strict=False)]


@lru_cache(maxsize=1000)
def labelled(path: str) -> str:
    """How a value begins that is packed."""
    return f"[{json.dumps(path)},"
