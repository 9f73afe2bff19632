"""Plain objects below one place of the lake: a prefix in S3, or a folder of this machine.

In: `s3://bucket/prefix`, `file:/folder` or a path. Out: names, sizes, times and bytes; names are relative to the place, with
slashes. What is not there is None or nothing; what S3 or the disk refuse comes out as they say it (`ClientError`, `OSError`).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from botocore.config import Config
from botocore.exceptions import ClientError

from forebay.aws.client import client

__all__ = ["Found", "Objects", "open_objects", "s3_client"]

S3_SCHEMES = ("s3", "s3a", "s3n")
DELETED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Found:
    name: str
    bytes: int
    modified: datetime


class Objects(Protocol):
    place: str

    def found(self, prefix: str = "", *, after: str = "") -> Iterator[Found]:
        """Everything whose name begins so, in order, those after a name only."""

    def folders(self) -> list[str]:
        """The names of the folders directly below the place."""

    def read(self, name: str) -> bytes | None: ...

    def read_tagged(self, name: str) -> tuple[bytes, str] | None:
        """With a tag that is another one when the content is."""

    def write(self, name: str, content: bytes) -> None: ...

    def write_over(self, name: str, content: bytes, tag: str | None) -> bool:
        """Only if the content is still the one with this tag; None: only if there is none. False: it is not."""

    def delete(self, names: Iterable[str]) -> None:
        """What is not there does not matter."""


def open_objects(place: str, *, s3: Any = None) -> Objects:
    parts = urlsplit(place)
    if parts.scheme in S3_SCHEMES:
        return S3Objects(s3 or s3_client(), parts.netloc, parts.path.strip("/"), place.rstrip("/"))
    return FolderObjects(Path(unquote(parts.path) if parts.scheme == "file" else place))


def s3_client() -> Any:
    """For many threads at once; boto3's own pool has ten connections."""
    return client("s3", config=Config(max_pool_connections=64, retries={"mode": "standard", "max_attempts": 5}))


class S3Objects:
    def __init__(self, s3: Any, bucket: str, prefix: str, place: str) -> None:
        self._s3, self._bucket, self.place = s3, bucket, place
        self._prefix = f"{prefix}/" if prefix else ""

    def found(self, prefix: str = "", *, after: str = "") -> Iterator[Found]:
        asked = {"Bucket": self._bucket, "Prefix": self._prefix + prefix}
        if after:
            asked["StartAfter"] = self._prefix + after
        for page in self._s3.get_paginator("list_objects_v2").paginate(**asked):
            for item in page.get("Contents", ()):
                yield Found(item["Key"].removeprefix(self._prefix), item["Size"], item["LastModified"])

    def folders(self) -> list[str]:
        pages = self._s3.get_paginator("list_objects_v2")
        pages = pages.paginate(Bucket=self._bucket, Prefix=self._prefix, Delimiter="/")
        found = (folder["Prefix"] for page in pages for folder in page.get("CommonPrefixes", ()))
        return sorted(folder.removeprefix(self._prefix).rstrip("/") for folder in found)

    def read(self, name: str) -> bytes | None:
        found = self.read_tagged(name)
        return found and found[0]

    def read_tagged(self, name: str) -> tuple[bytes, str] | None:
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=self._prefix + name)
        except ClientError as refused:
            if _status(refused) == 404 and refused.response["Error"].get("Code") != "NoSuchBucket":
                return None
            raise
        return answer["Body"].read(), answer["ETag"]

    def write(self, name: str, content: bytes) -> None:
        self._s3.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content)

    def write_over(self, name: str, content: bytes, tag: str | None) -> bool:
        condition = {"IfMatch": tag} if tag else {"IfNoneMatch": "*"}
        try:
            self._s3.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content, **condition)
        except ClientError as refused:
            if _status(refused) in (404, 409, 412):
                return False
            raise
        return True

    def delete(self, names: Iterable[str]) -> None:
        left = iter(names)
        while some := list(islice(left, DELETED_AT_ONCE)):
            keys = [{"Key": self._prefix + name} for name in some]
            answer = self._s3.delete_objects(Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True})
            if refused := answer.get("Errors"):
                first = refused[0]
                raise OSError(f"{len(refused)} objects were not deleted, such as {first['Key']}: {first['Code']}")


class FolderObjects:
    def __init__(self, root: Path) -> None:
        self._root, self.place = root, str(root)

    def found(self, prefix: str = "", *, after: str = "") -> Iterator[Found]:
        folder = self._root / prefix.rpartition("/")[0]
        names = (f"{where}/{name}" for where, _, files in os.walk(folder) for name in files)
        for name in sorted(os.path.relpath(name, self._root).replace(os.sep, "/") for name in names):
            if name.startswith(prefix) and name > after:
                try:
                    stat = (self._root / name).stat()
                except FileNotFoundError:
                    continue  # gone since it was listed
                yield Found(name, stat.st_size, datetime.fromtimestamp(stat.st_mtime, UTC))

    def folders(self) -> list[str]:
        return sorted(path.name for path in self._root.iterdir() if path.is_dir()) if self._root.is_dir() else []

    def read(self, name: str) -> bytes | None:
        try:
            return (self._root / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read_tagged(self, name: str) -> tuple[bytes, str] | None:
        content = self.read(name)
        return None if content is None else (content, hashlib.sha256(content).hexdigest())

    def write(self, name: str, content: bytes) -> None:
        place = self._root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        descriptor, aside = tempfile.mkstemp(dir=place.parent, prefix=".")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        # Hadoop's checksum of what was there, if it was Hadoop's.
        (place.parent / f".{place.name}.crc").unlink(missing_ok=True)
        Path(aside).replace(place)

    def write_over(self, name: str, content: bytes, tag: str | None) -> bool:
        """Two processes could still meet between the look and the write: no harm for what is written like this."""
        there = self.read_tagged(name)
        if (there and there[1]) != tag:
            return False
        self.write(name, content)
        return True

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            (self._root / name).unlink(missing_ok=True)


def _status(refused: ClientError) -> int:
    return int(refused.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
