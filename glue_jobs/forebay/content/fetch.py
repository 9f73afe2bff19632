"""One file's bytes from S3 in one GET, pinned to the version that was announced; never a HEAD, never a listing.

If the landing bucket no longer has that version, the copy is read that `after_load` made of it.

In: a file and, for a piece of it, a range of bytes. Out: the bytes, or `Unread` with the outcome that S3's answer means.
Throttling, S3's own failures, broken connections and bodies that end early are retried, with growing random pauses. *Our*
faults (expired credentials, a wrong signature) are raised: no file may be blamed for them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

from botocore import exceptions as aws

from forebay.aws.client import client, session
from forebay.aws.quick_gets import QuickGets
from forebay.content.limits import Limits
from forebay.content.outcome import FileReason, ReadOutcome, Unread
from forebay.counted import counted
from forebay.declaration.feed import copy_in
from forebay.declaration.service import Service
from forebay.errors import TryAgain
from forebay.landed_file import LandedFile

CONNECT_TIMEOUT_S, READ_TIMEOUT_S = 5, 60
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 10.0

TRANSIENT = (aws.ConnectionError, aws.HTTPClientError, aws.IncompleteReadError, aws.FlexibleChecksumError)
TRANSIENT_CODES = frozenset(
    {"SlowDown", "Throttling", "ThrottlingException", "TooManyRequests", "RequestLimitExceeded", "InternalError"}
    | {"ServiceUnavailable", "RequestTimeout", "KMS.ThrottlingException", "OperationAborted"}
)
OUR_FAULT = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId"}
    | {"SignatureDoesNotMatch", "RequestTimeTooSkewed", "AuthorizationHeaderMalformed", "PermanentRedirect"}
)
MEANING: dict[str, tuple[ReadOutcome, FileReason]] = {
    "NoSuchKey": ("missing", "no-such-key"),
    "NoSuchVersion": ("missing", "no-such-version"),
    "NoSuchBucket": ("missing", "no-such-bucket"),
    "InvalidObjectState": ("unavailable", "archived"),
    "InvalidRange": ("unreadable", "range-refused"),
}
MEANING_OF_STATUS: dict[int, tuple[ReadOutcome, FileReason]] = {
    403: ("denied", "access-denied"),
    404: ("missing", "no-such-key"),
    405: ("missing", "delete-marker"),  # a GET that names a delete marker as its version
    412: ("changed", "etag-differs"),
    416: ("unreadable", "range-refused"),
}


PERHAPS_MOVED = ("no-such-key", "no-such-version", "no-such-bucket", "delete-marker", "etag-differs", "access-denied")
"""Why a file is not read where it landed. Access is denied to a missing one, too, if the role may not list the bucket."""


class Get(Protocol):
    """Bytes `start` up to `stop` of a file (None: to its end), or why not."""

    def __call__(self, file: LandedFile, start: int = 0, stop: int | None = None) -> bytes | Unread: ...


Metadata = dict[LandedFile, Mapping[str, str]]
"""The metadata of each object, from the answer to its GET."""


class S3(Protocol):
    """The one call that this module makes."""

    def get_object(self, **request: Any) -> dict[str, Any]: ...


def s3_client(connections: int) -> S3:
    """A client with the settings of the environment (`AWS_ENDPOINT_URL`, `AWS_REGION`, credentials). It does not retry,
    because `Retrying` does."""
    from botocore.config import Config

    config = Config(
        max_pool_connections=connections,
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S,
        retries={"total_max_attempts": 1, "mode": "standard"},
    )
    keys = session().get_credentials
    timeout_s = CONNECT_TIMEOUT_S, READ_TIMEOUT_S
    return QuickGets(client("s3", config=config), lambda: keys().get_frozen_credentials(), connections, timeout_s)


@lru_cache(maxsize=1)
def s3_of_this_process(connections: int) -> S3:
    """Kept for the life of the worker process, which Spark uses again: connections stay open from batch to batch."""
    return s3_client(connections)


@dataclass(frozen=True)
class GetObject:
    """One GET, tried once. Raises `TryAgain` where a later try may succeed. The rest of the answer
    goes into `metadata`, if it is given."""

    s3: S3
    max_bytes: int
    metadata: Metadata | None = None

    def __call__(self, file: LandedFile, start: int = 0, stop: int | None = None) -> bytes | Unread:
        try:
            answer = self.s3.get_object(**_request(file, start, stop))
            if self.metadata is not None:
                self.metadata[file] = answer.get("Metadata", {})
            return self._body(answer)
        except aws.ClientError as error:
            return _meaning(file, error)
        except TRANSIENT as error:
            raise TryAgain(f"{file.uri}: {type(error).__name__}: {error}") from error

    def _body(self, answer: dict[str, Any]) -> bytes | Unread:
        length, body = answer["ContentLength"], answer["Body"]
        if length > self.max_bytes:
            body.close()  # closing, not reading it to the end, is what makes a refusal cheap
            return Unread("unreadable", "too-large", f"{length} bytes, and {self.max_bytes} is the limit")
        data: bytes = body.read()
        if len(data) != length:
            raise TryAgain(f"the body ended after {len(data)} of {length} bytes")
        return data


@dataclass(frozen=True)
class Retrying:
    """Repeats the request while the answer is `TryAgain`. The pause is random, up to a bound that doubles, so that many
    readers that were throttled together do not come back together."""

    get: Get
    attempts: int
    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = random.random

    def __call__(self, file: LandedFile, start: int = 0, stop: int | None = None) -> bytes | Unread:
        for attempt in range(1, self.attempts + 1):
            try:
                return self.get(file, start, stop)
            except TryAgain as problem:
                last = str(problem)
            if attempt < self.attempts:
                self.sleep(self.draw() * min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt))
        return Unread("unavailable", "gave-up", f"asked {counted(self.attempts, 'time')}; at last: {last}")

    @classmethod
    def over_s3(cls, s3: S3, limits: Limits, metadata: Metadata | None = None) -> Retrying:
        return cls(GetObject(s3, limits.max_file_bytes, metadata), limits.attempts)


@dataclass(frozen=True)
class OrCopy:
    """The file or, if S3 no longer has its version, the copy that `after_load` made of it. The place of the copy contains the
    file's id, so a copy is whole and of this version. `services` are those by whose names the ledger may know the file."""

    get: Get
    archives: tuple[str, ...]
    services: tuple[str, ...]
    metadata: Metadata | None = None

    def __call__(self, file: LandedFile, start: int = 0, stop: int | None = None) -> bytes | Unread:
        found = self.get(file, start, stop)
        if not isinstance(found, Unread) or found.reason not in PERHAPS_MOVED:
            return found
        unread = found
        for copy in self._copies(file):
            read = self.get(copy, start, stop)
            if not isinstance(read, Unread):
                if self.metadata is not None:
                    # That of the copy stays: other pieces of the file are read at the same time.
                    self.metadata[file] = self.metadata[copy]
                return read
            if read.outcome != "missing" and unread is found:
                detail = f"{found.detail}; its copy {copy.uri} is {read.outcome}: {read.detail}"
                # Without permission on the archive, nobody knows whether there is a copy.
                unread = replace(found if read.outcome == "denied" else read, detail=detail)
        return unread

    def _copies(self, file: LandedFile) -> Iterator[LandedFile]:
        ids = dict.fromkeys(replace(file, service=name).file_id for name in (file.service, *self.services))
        for archive in self.archives:
            yield from (LandedFile(*copy_in(archive, file.bucket, file.key, file_id)) for file_id in ids)

    @classmethod
    def over(cls, get: Get, service: Service, metadata: Metadata | None = None) -> Get:
        if not service.archives:
            return get
        return cls(get, service.archives, ("", service.name, *service.shares_files_with), metadata)


def _request(file: LandedFile, start: int, stop: int | None) -> dict[str, Any]:
    """The version "null" is shared by all contents put before versioning was on, so the etag pins those."""
    request: dict[str, Any] = {"Bucket": file.bucket, "Key": file.key}
    if file.version_id:
        request["VersionId"] = file.version_id
    if file.etag and not file.has_own_version:
        request["IfMatch"] = f'"{file.etag}"'
    if start or stop is not None:
        request["Range"] = f"bytes={start}-" + ("" if stop is None else str(stop - 1))
    return request


def _meaning(file: LandedFile, error: aws.ClientError) -> Unread:
    code = str(error.response.get("Error", {}).get("Code", ""))
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    detail = f"{status} {code}: {error.response.get('Error', {}).get('Message', '')}".strip()
    if code in TRANSIENT_CODES or status >= 500 or status == 429:
        raise TryAgain(f"{file.uri}: {detail}") from error
    if code in OUR_FAULT:
        raise error
    if code.startswith("KMS."):
        return Unread("denied", "key-denied", detail)
    outcome, reason = MEANING.get(code) or MEANING_OF_STATUS.get(status, ("unavailable", "refused-by-s3"))
    if status == 403 and outcome == "denied":
        detail += f" (S3 also answers this for a missing object if the role has no s3:ListBucket on {file.bucket})"
    return Unread(outcome, reason, detail)
