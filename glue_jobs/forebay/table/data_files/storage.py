"""The storage of data files: an S3 bucket, or a local folder.

In: a table's path, a file's path inside it, its bytes. It runs in executors, so it is picklable and makes its client on first
use, with the environment's credentials. A put run twice leaves the same object. Errors are `OSError` for a folder, and
`UploadFailed` or `DownloadFailed` for S3, and concern this one file.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa

from forebay.address import bucket_and_key, is_s3, local_folder
from forebay.aws.client import client
from forebay.errors import ForebayError, InvalidConfiguration

MULTIPART_BYTES = 64 << 20


class UploadFailed(ForebayError):
    """S3 refused this file, or did not answer."""


def storage_as(env: Mapping[str, str]) -> Storage:
    """The storage by the driver's environment; executors have their own, which on a laptop is the same."""
    return Storage(
        region=env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION"),
        endpoint=env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL"),
    )


class DownloadFailed(ForebayError):
    """S3 refused to give this file, or did not answer."""


@dataclass(frozen=True)
class Storage:
    """Puts files where their table is, and gets them back. No secrets travel with it: each executor finds its own
    credentials."""

    region: str | None = None
    endpoint: str | None = None
    connections: int = 16
    _clients: _Clients = field(default_factory=lambda: _Clients(), compare=False, repr=False)

    def put(self, table_path: str, name: str, content: pa.Buffer) -> None:
        if is_s3(table_path):
            bucket, key = bucket_and_key(table_path)
            self._put_object(bucket, f"{key}/{name}".lstrip("/"), content)
        elif table_path.startswith(("/", "file:")):
            target = local_folder(table_path) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        else:
            raise InvalidConfiguration.one(table_path, "data files cannot be put there", "use s3://, s3a:// or file:")

    def get(self, table_path: str, name: str) -> pa.Buffer:
        """The bytes of a file that was put."""
        if not is_s3(table_path):
            return pa.py_buffer((local_folder(table_path) / name).read_bytes())
        from botocore.exceptions import BotoCoreError, ClientError

        bucket, key = bucket_and_key(table_path)
        try:
            found = self._clients.of(self).get_object(Bucket=bucket, Key=f"{key}/{name}".lstrip("/"))
            return pa.py_buffer(found["Body"].read())
        except (BotoCoreError, ClientError) as failure:
            raise DownloadFailed(f"s3://{bucket}/{key}/{name}: {failure}") from failure

    def _put_object(self, bucket: str, key: str, content: pa.Buffer) -> None:
        from boto3.exceptions import Boto3Error
        from boto3.s3.transfer import TransferConfig
        from botocore.exceptions import BotoCoreError, ClientError

        whole = TransferConfig(multipart_threshold=MULTIPART_BYTES, use_threads=False)
        try:
            self._clients.of(self).upload_fileobj(pa.BufferReader(content), bucket, key, Config=whole)
        except (Boto3Error, BotoCoreError, ClientError) as failure:
            raise UploadFailed(f"s3://{bucket}/{key}: {failure}") from failure


class _Clients:
    """One boto3 client a process, whichever task it works for; it does not travel."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[Storage, Any] = {}

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return _clients_of_this_process, ()

    def of(self, storage: Storage) -> Any:
        from botocore.config import Config

        with self._lock:
            if storage not in self._clients:
                config = Config(
                    max_pool_connections=storage.connections,
                    retries={"mode": "standard", "max_attempts": 5},
                    s3={"addressing_style": "path"} if storage.endpoint else None,
                )
                made = client("s3", region=storage.region, endpoint_url=storage.endpoint, config=config)
                self._clients[storage] = made
            return self._clients[storage]


@cache
def _clients_of_this_process() -> _Clients:
    return _Clients()
