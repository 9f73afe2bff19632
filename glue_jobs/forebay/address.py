"""Addresses: `s3://bucket/prefix`, `file:/folder`, or a path of this machine.

In: an address as a person or Spark wrote it. Out: whether it is in S3; its bucket and key, or its folder. Pure, but a
folder that a person typed is looked for. An address without a bucket, or of another scheme, is `InvalidConfiguration`: it
would be a folder of this machine. The URL of a queue names its region.
"""

from __future__ import annotations

import re
from contextlib import suppress
from os.path import isfile
from pathlib import Path
from urllib.parse import urlsplit

from forebay.errors import InvalidConfiguration

S3_SCHEMES = ("s3", "s3a")
"""Hadoop removed `s3n`, and delta-rs never had it."""
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
WRITE = "write s3://bucket/prefix"
NO_LAKE = re.compile(r"%[0-9A-Fa-f]{2}|[][^|\\\x00-\x1f\x7f]")
NO_LAKE_IN_S3 = re.compile(r"[#?]|//|(?<![^/])\.{1,2}(?![^/])")


def is_s3(address: str) -> bool:
    scheme, mark, _ = address.partition("://")
    return bool(mark) and scheme in S3_SCHEMES


def bucket_and_key(address: str) -> tuple[str, str]:
    """The key has no slash at either end; it is empty for the bucket itself."""
    bucket, _, key = address.partition("://")[2].partition("/")
    if not bucket:
        raise InvalidConfiguration.one(address, "names no bucket", WRITE)
    return bucket, key.strip("/")


def local_folder(address: str) -> Path:
    """The folder, as Hadoop reads it: a path is not URL-encoded, whatever its prefix."""
    path = address.removeprefix("file:")
    if path == address and SCHEME.match(address):
        raise InvalidConfiguration.one(address, "is neither in S3 nor a folder", WRITE)
    return Path("/" + path.lstrip("/") if path != address else path)


def region_of_queue(url: str) -> str | None:
    """The region in a queue's URL; None where it names none."""
    found = re.match(r"sqs\.([a-z0-9-]+)\.amazonaws\.", urlsplit(url).hostname or "")
    return found[1] if found else None


def lake_address(text: str) -> str:
    """The same of a lake. Spark takes a name literally, and delta-rs reads it as a URL: they agree on most names only."""
    address = typed_address(text, "lake")
    odd = NO_LAKE.search(address) or (NO_LAKE_IN_S3.search(bucket_and_key(address)[1]) if is_s3(address) else None)
    if odd:
        what = f"has {odd[0]!r} in its name, which not all engines read alike"
        raise InvalidConfiguration.one(f"lake {text}", what, "choose another folder")
    return address


def typed_address(text: str, what: str) -> str:
    """The address that a person typed, in S3 or of a folder; a relative one becomes absolute. A bare name is a folder only if
    it is there, for it may be a bucket whose s3:// was forgotten."""
    address = text.rstrip("/")
    if address.startswith("~"):
        with suppress(RuntimeError):  # a person without a home
            address = str(Path(address).expanduser())
    if is_s3(address):
        return address
    if address.startswith(("file:/", "/")):
        _must_be_no_file(address, what)
        return address
    if not address or SCHEME.match(f"{address}/"):
        of_what = "is not the address of a lake" if what == "lake" else "is neither in S3 nor a folder"
        raise InvalidConfiguration.one(f"{what} {text}", of_what, f"{WRITE}, or a folder")
    _must_be_no_file(address, what)
    if address.split("/")[0] not in (".", "..") and not Path(address).is_dir():
        hint = f"write s3://{address} for a bucket, or ./{address} for a new folder"
        raise InvalidConfiguration.one(f"{what} {text}", "is not a folder here", hint)
    return str(Path(address).resolve())


def _must_be_no_file(address: str, what: str) -> None:
    folder = local_folder(address)
    # `Path.is_file` raises an error if this person may not read its folder.
    if found := next((place for place in (folder, *folder.parents) if isfile(place)), None):  # noqa: PTH113
        raise InvalidConfiguration.one(
            f"{what} {address}", f"{found} is a file", "name a folder, or s3://bucket/prefix"
        )


def overlap(one: str, other: str) -> bool:
    """Whether two places are the same, or one is inside the other."""
    first, second = (f"{_spelt_once(place)}/" for place in (one, other))
    return first.startswith(second) or second.startswith(first)


def _spelt_once(place: str) -> str:
    return "s3://" + "/".join(bucket_and_key(place)).rstrip("/") if is_s3(place) else str(local_folder(place).resolve())
