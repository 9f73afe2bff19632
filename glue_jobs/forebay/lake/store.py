"""Small durable objects with names: a folder on a disk, or a prefix in S3.

The checkpoint's safety rests on `put_once`: of two writers of one name exactly one wins, and a writer whose own first
attempt got through unnoticed wins too. Errors of S3 come out as `Misdeclared` (the path is wrong or forbidden) or
`Halt`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from forebay.aws.client import client
from forebay.aws.retrying import ATTEMPTS
from forebay.errors import ForebayError, Halt, Misdeclared

__all__ = ["LocalStore", "S3Store", "Store", "open_store"]


class Store(Protocol):
    """Names are relative, with slashes."""

    path: str

    def put_once(self, name: str, content: bytes) -> bool:
        """True when `name` now holds `content`, False when it holds something else. Durable when it returns."""

    def put(self, name: str, content: bytes) -> None:
        """Writes `name` anew, whatever it held."""

    def get(self, name: str) -> bytes | None: ...

    def names(self, folder: str) -> list[str]:
        """The names directly in `folder`, without it, sorted."""

    def delete(self, names: Iterable[str]) -> None:
        """Removes what is there; what is not there does not matter."""


def open_store(path: str) -> Store:
    """The store at `s3://bucket/prefix` (with the environment's credentials and endpoint), or at a local path."""
    if urlsplit(path).scheme not in ("s3", "s3a", "s3n"):
        return LocalStore(path)
    from botocore.config import Config

    retrying = Config(retries={"mode": "standard", "max_attempts": 5})
    return S3Store(client("s3", config=retrying), path)


class LocalStore:
    """A folder. For one machine: laptops, tests, and shared disks that honour hard links."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._root = Path(unquote(urlsplit(path).path) if path.startswith("file:") else path)

    def put_once(self, name: str, content: bytes) -> bool:
        written = self._write_aside(name, content)
        try:
            os.link(written, self._root / name)  # refuses where the name is taken, which a rename would not
        except FileExistsError:
            return self.get(name) == content
        finally:
            written.unlink()
        self._settle(self._root / name)
        return True

    def put(self, name: str, content: bytes) -> None:
        self._write_aside(name, content).replace(self._root / name)
        self._settle(self._root / name)

    def get(self, name: str) -> bytes | None:
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    def names(self, folder: str) -> list[str]:
        try:
            return sorted(p.name for p in (self._root / folder).iterdir() if p.is_file() and not p.name.startswith("."))
        except FileNotFoundError:
            return []

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            (self._root / name).unlink(missing_ok=True)

    def _write_aside(self, name: str, content: bytes) -> Path:
        folder = (self._root / name).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor, aside = tempfile.mkstemp(dir=folder, prefix=".")
        except OSError as error:
            raise Misdeclared.one("manifestPath", f"{self.path} cannot be written: {error}") from error
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return Path(aside)

    @staticmethod
    def _settle(path: Path) -> None:
        """The entry in the folder must survive a power cut as well, not only the content."""
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


class S3Store:
    """A prefix in S3. `client` is boto3's; it retries what is worth retrying."""

    def __init__(self, client: Any, path: str) -> None:
        parts = urlsplit(path)
        self._client, self.path, self._bucket = client, path, parts.netloc
        self._prefix = parts.path.strip("/") + "/" if parts.path.strip("/") else ""

    def put_once(self, name: str, content: bytes) -> bool:
        for _ in range(ATTEMPTS):
            try:
                self._client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content, IfNoneMatch="*")
                return True
            except ClientError as error:
                status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
                if status == 412:  # taken, perhaps by our own earlier attempt whose answer was lost
                    return self.get(name) == content
                if status != 409:  # 409: another writer of this name is under way; ask again
                    raise self._as_error("put", name, error) from error
            except BotoCoreError as error:
                raise self._as_error("put", name, error) from error
        raise Halt(f"{self.path}/{name} could not be written: another writer keeps writing it")

    def put(self, name: str, content: bytes) -> None:
        try:
            self._client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=content)
        except (ClientError, BotoCoreError) as error:
            raise self._as_error("put", name, error) from error

    def get(self, name: str) -> bytes | None:
        try:
            answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)
            content: bytes = answer["Body"].read()
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and error.response.get("Error", {}).get("Code") in ("NoSuchKey", "404"):
                return None
            raise self._as_error("get", name, error) from error
        return content

    def names(self, folder: str) -> list[str]:
        prefix = f"{self._prefix}{folder}/"
        pages = self._client.get_paginator("list_objects_v2")
        try:
            found = [
                item["Key"][len(prefix) :]
                for page in pages.paginate(Bucket=self._bucket, Prefix=prefix, Delimiter="/")
                for item in page.get("Contents", ())
            ]
        except (ClientError, BotoCoreError) as error:
            raise self._as_error("list", folder, error) from error
        return sorted(found)

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                self._client.delete_object(Bucket=self._bucket, Key=self._prefix + name)
            except (ClientError, BotoCoreError) as error:
                raise self._as_error("delete", name, error) from error

    def _as_error(self, action: str, name: str, error: Exception) -> ForebayError:
        if isinstance(error, ClientError) and error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") in (
            400,
            401,
            403,
            404,
        ):
            return Misdeclared.one(
                "manifestPath",
                f"cannot {action} {self.path}/{name}: {error}",
                "the job's role needs s3:ListBucket, and s3:GetObject, s3:PutObject and s3:DeleteObject under it",
            )
        return Halt(f"cannot {action} {self.path}/{name}: {error}; nothing was deleted from the queue, start again")
