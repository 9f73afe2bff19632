"""Objects under a prefix of a bucket.

In: boto3's client and `s3://bucket/prefix`. Out: `Objects`. A wrong or forbidden place is `InvalidConfiguration`, with the
rights that are needed; anything else that S3 refuses is `Halt`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from typing import Any, BinaryIO, cast

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

from forebay.address import bucket_and_key
from forebay.aws.client import client, session
from forebay.aws.preflight import plainly
from forebay.aws.retrying import ATTEMPTS
from forebay.counted import counted
from forebay.errors import Halt, InvalidConfiguration, TryAgain
from forebay.lake.listed import Listed, OldVersion
from forebay.lake.ranged import Ranged
from forebay.threads import answers_by

DELETED_AT_ONCE = 1000
ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "AWS_USE_FIPS_ENDPOINT")
"""The variables, beside those of its session, that decide where a client of S3 asks."""
TAIL = 64 * 1024
"""The bytes at the end of an object that are fetched when it is opened: where Parquet keeps its index."""
ONE_AT_A_TIME = threading.Lock()
"""Threads may not make clients of one session at the same time."""
WRONG_OR_FORBIDDEN = (400, 401, 403, 404)
RIGHTS = "the job's role needs s3:ListBucket, and s3:GetObject, s3:PutObject and s3:DeleteObject under it"
RIGHTS_ON_VERSIONS = "the role needs s3:ListBucketVersions, and s3:GetObjectVersion and s3:DeleteObjectVersion under it"


def s3_client() -> Any:
    """The client of this process for its environment, for many threads at once. Another one has no open connections yet."""
    with ONE_AT_A_TIME:
        return _s3_client(session(), *map(os.environ.get, ENDPOINTS))


@lru_cache(4)
def _s3_client(session: Any, *endpoints: str | None) -> Any:
    """boto3's own pool has ten connections."""
    return client("s3", config=Config(max_pool_connections=64, retries={"mode": "standard", "max_attempts": 5}))


class S3Objects:
    """`s3` is boto3's client; it retries what is worth retrying."""

    def __init__(self, s3: Any, place: str) -> None:
        self._s3, self.place = s3, place.rstrip("/")
        self._bucket, prefix = bucket_and_key(place)
        self._prefix = f"{prefix}/" if prefix else ""

    def found(self, prefix: str = "", *, after: str = "") -> Iterator[Listed]:
        start = {"StartAfter": self._prefix + after} if after else {}
        for page in self._pages(prefix, **start):
            for item in page.get("Contents", ()):
                yield Listed(item["Key"].removeprefix(self._prefix), item["Size"], item["LastModified"])

    def folders(self) -> list[str]:
        pages = self._pages("", Delimiter="/")
        found = (folder["Prefix"] for page in pages for folder in page.get("CommonPrefixes", ()))
        return sorted(_name(self._prefix, folder) for folder in found)

    def names(self, folder: str) -> list[str]:
        pages = self._pages(f"{folder}/", Delimiter="/")
        keys = (item["Key"] for page in pages for item in page.get("Contents", ()))
        return sorted(key.removeprefix(f"{self._prefix}{folder}/") for key in keys)

    def read(self, name: str) -> bytes | None:
        found = self.read_tagged(name)
        return found and found[0]

    def open(self, name: str) -> BinaryIO | None:
        return self._opened(name)

    def open_old(self, version: OldVersion) -> BinaryIO | None:
        return self._opened(version.name, VersionId=version.id)

    def _opened(self, name: str, **which: str) -> BinaryIO | None:
        found = self._get(name, Range=f"bytes=-{TAIL}", **which)
        if found is None:
            return None
        tail, answer = found
        size = int(answer.get("ContentRange", "").rpartition("/")[2] or len(tail))

        def fetch(begin: int, end: int) -> bytes:
            found = self._get(name, Range=f"bytes={begin}-{end - 1}", **which)
            if found is None:
                raise TryAgain(f"{self.place}/{name} disappeared while it was read")
            return found[0]

        return cast(BinaryIO, Ranged(fetch, size, tail))

    def read_tagged(self, name: str) -> tuple[bytes, str] | None:
        found = self._get(name)
        return found and (found[0], found[1].get("ETag", ""))

    def _get(self, name: str, **asked: str) -> tuple[bytes, dict[str, Any]] | None:
        with self._refusals("read", name):
            try:
                answer = self._s3.get_object(Bucket=self._bucket, Key=self._prefix + name, **asked)
            except ClientError as refused:
                if _status(refused) == 404 and refused.response["Error"].get("Code") != "NoSuchBucket":
                    return None
                raise
            return answer["Body"].read(), answer

    def write(self, name: str, content: bytes) -> None:
        with self._refusals("write", name):
            self._put(name, content)

    def write_once(self, name: str, content: bytes) -> bool:
        with self._refusals("write", name):
            for _ in range(ATTEMPTS):
                try:
                    self._put(name, content, IfNoneMatch="*")
                    return True
                except ClientError as refused:
                    if _status(refused) == 412:  # taken, perhaps by our own earlier attempt whose answer was lost
                        return self.read(name) == content
                    if _status(refused) != 409:  # 409: another writer of this name is under way; ask again
                        raise
        raise Halt(f"{self.place}/{name} could not be written, because another writer keeps changing it")

    def write_over(self, name: str, content: bytes, tag: str | None) -> bool:
        condition = {"IfMatch": tag} if tag else {"IfNoneMatch": "*"}
        with self._refusals("write", name):
            try:
                self._put(name, content, **condition)
            except ClientError as refused:
                if _status(refused) in (404, 409, 412) and refused.response["Error"].get("Code") != "NoSuchBucket":
                    return False
                raise
        return True

    def delete(self, names: Iterable[str]) -> None:
        self._delete({"Key": self._prefix + name} for name in names)

    def old_versions(self) -> Iterator[OldVersion]:
        with self._refusals("list", "old versions", RIGHTS_ON_VERSIONS):
            pages = self._s3.get_paginator("list_object_versions")
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._prefix):
                for one in page.get("Versions", ()):
                    if not one["IsLatest"]:
                        yield OldVersion(one["Key"].removeprefix(self._prefix), one["VersionId"])

    def folders_of_old_versions(self) -> list[str]:
        with self._refusals("list", "old versions", RIGHTS_ON_VERSIONS):
            pages = self._s3.get_paginator("list_object_versions")
            pages = pages.paginate(Bucket=self._bucket, Prefix=self._prefix, Delimiter="/")
            found = {folder["Prefix"] for page in pages for folder in page.get("CommonPrefixes", ())}
        folders = sorted(_name(self._prefix, one) for one in found)
        return [name for name, old in answers_by(self._has_old_versions_only, folders).items() if old]

    def _has_old_versions_only(self, folder: str) -> bool:
        if next(self.found(f"{folder}/"), None) is not None:
            return False
        return next(S3Objects(self._s3, f"{self.place}/{folder}").old_versions(), None) is not None

    def delete_old(self, versions: Iterable[OldVersion]) -> None:
        which = ({"Key": self._prefix + one.name, "VersionId": one.id} for one in versions)
        self._delete(which, RIGHTS_ON_VERSIONS)

    def _delete(self, which: Iterable[dict[str, str]], rights: str = RIGHTS) -> None:
        left = iter(which)
        while some := list(islice(left, DELETED_AT_ONCE)):
            with self._refusals("delete", some[0]["Key"].removeprefix(self._prefix), rights):
                answer = self._s3.delete_objects(Bucket=self._bucket, Delete={"Objects": some, "Quiet": True})
            if refused := answer.get("Errors"):
                first = refused[0]
                raise Halt(
                    f"{counted(len(refused), 'object', 'was not')} deleted, such as {first['Key']}: {first['Code']}; {rights}"
                )

    def _put(self, name: str, content: bytes, **condition: str) -> None:
        self._s3.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content, **condition)

    def _pages(self, prefix: str, **asked: str) -> Iterator[Any]:
        with self._refusals("list", prefix):
            pages = self._s3.get_paginator("list_objects_v2")
            yield from pages.paginate(Bucket=self._bucket, Prefix=self._prefix + prefix, **asked)

    @contextmanager
    def _refusals(self, action: str, name: str, rights: str = RIGHTS) -> Iterator[None]:
        try:
            yield
        except NoCredentialsError as refused:
            raise plainly(self.place, refused, {}, "AWS_ENDPOINT_URL_S3") from refused
        except (ClientError, BotoCoreError) as refused:
            if isinstance(refused, ClientError) and refused.response.get("Error", {}).get("Code") == "NoSuchBucket":
                hint = "create it, or check its name and AWS_REGION"
                raise InvalidConfiguration.one(self.place, f"there is no bucket {self._bucket}", hint) from refused
            if isinstance(refused, ClientError) and _status(refused) in WRONG_OR_FORBIDDEN:
                raise InvalidConfiguration.one(
                    self.place, f"cannot {action} {name or 'it'}: {refused}", rights
                ) from refused
            raise Halt(f"cannot {action} {self.place}/{name}: {refused}; nothing was lost, run it again") from refused


def _name(prefix: str, folder: str) -> str:
    return folder.removeprefix(prefix).rstrip("/")


def _status(refused: ClientError) -> int:
    return int(refused.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
