"""The vault: what personal values were before they were treated, encrypted, at a place apart from the lake.

In: the address of a vault. Out: where what lies in it, once. It has one table, and one object for each wrapping key:

* `values`, a Delta table: one row for each record that had personal values and tells whose it is. `key` is the data key of its
  subjects, encrypted by the wrapping key `key_id`; `fields` are the values, each encrypted by that data key. Where a record
  went, and whether it was retried since, changes nothing here: `file_id` and `byte_offset` are what it is known by.
* `wrapping/<key_id>.json`: a wrapping key, encrypted by the key that the declarations name (`keys`).

Whoever is forgotten is so by deleting the rows of `values` whose `subjects` have his token, key and values in one, and by
removing the data files that held them.
"""

from __future__ import annotations

from forebay.address import overlap
from forebay.declaration.privacy import Privacy
from forebay.errors import InvalidConfiguration
from forebay.privacy.keys import is_local

__all__ = ["COLUMNS", "VALUES", "key_data", "must_lie_apart", "value_data", "values_of", "wrapping_of"]

VALUES = "values"
WRAPPING = "wrapping"

COLUMNS = (
    "day date, at timestamp, service string, generation string, batch long, file_id string, byte_offset long, "
    "subjects array<string>, key_id string, key binary, fields array<struct<path: string,value: binary>>"
)
"""`subjects` are tokens (`subject.subject_tokens`), mostly one. A path is as the declarations have it, joined by dots. What is
encrypted is 12 bytes of nonce, the ciphertext, and 16 bytes of tag: AES-256-GCM."""


def must_lie_apart(privacy: Privacy, lake: str) -> None:
    """Who reads the lake must read neither the vault nor what opens it, nor the secret by which tokens can be tried."""
    keys = {"vault_key": privacy.vault_key} if is_local(privacy.vault_key) else {}
    for name, place in {"vault": privacy.vault, "secret": privacy.secret, **keys}.items():
        if place and overlap(place, lake):
            raise InvalidConfiguration.one(
                f"privacy.{name}", f"{place} is not apart from the lake {lake}", "name another place"
            )


def values_of(vault: str) -> str:
    """The address of the table."""
    return f"{vault.rstrip('/')}/{VALUES}"


def wrapping_of(vault: str) -> str:
    """Where the wrapping keys are."""
    return f"{vault.rstrip('/')}/{WRAPPING}"


def value_data(service: str, key_id: str, path: str) -> str:
    """What a value is bound to (GCM's associated data). The table is not in it: no table is known yet where a value is
    encrypted, and a record that is retried may go to another one."""
    return f"value/{service}/{key_id}/{path}"


def key_data(service: str, key_id: str, subjects: str) -> str:
    """What a data key is bound to; subjects with a space between."""
    return f"key/{service}/{key_id}/{subjects}"
