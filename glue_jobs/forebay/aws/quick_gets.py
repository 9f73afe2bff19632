"""GETs of S3 objects without most of the work that boto3 does for each request, which takes a millisecond of CPU, and without
that of urllib3, which takes as much as all that is left.

In: the arguments of boto3's `get_object`. Out: the parts of its answer that forebay reads, or the exceptions of botocore. boto3
makes the first request to a bucket: it finds the endpoint, and its request shows the host, the path and the region. Later
requests go there without it. Whatever S3 does not answer with bytes, boto3 asks again, and says what it means. It also follows
a bucket to another region. Only throttling and failures of S3 are not asked again at once.
"""

from __future__ import annotations

import os
import re
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from botocore.exceptions import ClientError, FlexibleChecksumError, HTTPClientError, IncompleteReadError
from botocore.httpchecksum import Crc32Checksum, Sha1Checksum, Sha256Checksum
from botocore.httpsession import create_urllib3_context, get_cert_path
from botocore.utils import get_environ_proxies
from urllib3.util import wait_for_read

from forebay.aws.client import session
from forebay.aws.signature import Keys, signed_get

SCOPE = re.compile(r"AWS4-HMAC-SHA256 Credential=[^/]+/\d{8}/([^/]+)/s3/aws4_request")
CODE = re.compile(rb"<Code>([\w.]+)</Code>")
KMS_THROTTLES = "KMS.ThrottlingException"
"""Throttling that S3 answers with status 400."""
HEADERS = {"IfMatch": "if-match", "Range": "range"}
METADATA, CHECKSUM = "x-amz-meta-", "x-amz-checksum-"
CHECKSUMS = {"crc32": Crc32Checksum, "sha1": Sha1Checksum, "sha256": Sha256Checksum}
"""Those that botocore can check."""


@dataclass(frozen=True)
class _Place:
    """Where the objects of a bucket are. `path` comes before their keys, and `agent` is what boto3 calls itself."""

    connections: _Connections
    host: str
    path: str
    region: str
    agent: str


class QuickGets:
    """`keys` gives the current credentials of the client `s3`. At most this many `connections` to a bucket are kept open."""

    def __init__(self, s3: Any, keys: Callable[[], Keys], connections: int, timeout_s: tuple[float, float]) -> None:
        self._s3, self._keys, self._connections, self._timeout_s = s3, keys, connections, timeout_s
        self._places: dict[str, _Place] = {}
        self._of_thread = threading.local()
        s3.meta.events.register("before-send.s3.GetObject", self._see)

    def get_object(self, **request: Any) -> dict[str, Any]:
        place = self._places.get(request["Bucket"])
        return (place and self._quick(place, request)) or self._by_boto3(request)

    def _quick(self, place: _Place, request: dict[str, Any]) -> dict[str, Any] | None:
        path, version = place.path + _quoted(request["Key"]), request.get("VersionId")
        query = f"versionId={quote(version, safe='')}" if version else ""
        headers = {name: request[argument] for argument, name in HEADERS.items() if argument in request}
        headers["x-amz-checksum-mode"] = "ENABLED"
        headers = signed_get(place.host, path, query, headers, self._keys(), place.region)
        connection = place.connections.take()
        try:
            if connection.sock is None:
                place.connections.open(connection)
            asked = f"{path}?{query}" if query else path
            connection.request("GET", asked, headers={**headers, "user-agent": place.agent})
            answer = connection.getresponse()
            if answer.status in (200, 206):
                return _answered(answer, connection, place.connections)
            body = answer.read()
        except (OSError, HTTPException):
            connection.close()
            return None
        place.connections.give_back(connection)
        found = CODE.search(body)
        code = found[1].decode() if found else str(answer.status)
        if answer.status == 429 or answer.status >= 500 or code == KMS_THROTTLES:
            raise _failed(answer.status, code)
        return None

    def _by_boto3(self, request: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._s3.get_object(**request)
        if (bucket := request["Bucket"]) not in self._places:
            place = self._place(self._of_thread.sent, request["Key"])
            if place is not None:
                self._places.setdefault(bucket, place)
        return answer

    def _see(self, request: Any, **_: Any) -> None:
        self._of_thread.sent = request

    def _place(self, sent: Any, key: str) -> _Place | None:
        """None where requests go through a proxy, or are not signed as `signature` signs them."""
        url, headers = urlsplit(sent.url), {name.lower(): _text(value) for name, value in sent.headers.items()}
        signed = SCOPE.match(headers.get("authorization", ""))
        path = url.path.removesuffix(_quoted(key))
        if signed is None or path == url.path or get_environ_proxies(sent.url).get(url.scheme):
            return None
        connections = _Connections(url, self._connections, self._timeout_s)
        return _Place(connections, url.netloc, path, signed[1], headers["user-agent"])


class _Connections:
    """Connections to one host. A request takes one, and gives it back after the last byte of the answer. At most this `most`
    wait."""

    def __init__(self, url: SplitResult, most: int, timeout_s: tuple[float, float]) -> None:
        self._most, (connect_s, self._read_s) = most, timeout_s
        self._waiting: list[HTTPConnection] = []
        self._new: Callable[[], HTTPConnection]
        if url.scheme == "https":
            trust = create_urllib3_context()
            trust.load_verify_locations(trusted())
            trust.verify_mode, trust.check_hostname = ssl.CERT_REQUIRED, True
            self._new = lambda: HTTPSConnection(url.netloc, timeout=connect_s, context=trust)
        else:
            self._new = lambda: HTTPConnection(url.netloc, timeout=connect_s)

    def take(self) -> HTTPConnection:
        try:
            connection = self._waiting.pop()
        except IndexError:
            return self._new()
        if connection.sock is not None and wait_for_read(connection.sock, 0):
            connection.close()  # as S3 did meanwhile
        return connection

    def open(self, connection: HTTPConnection) -> None:
        connection.connect()
        connection.sock.settimeout(self._read_s)

    def give_back(self, connection: HTTPConnection) -> None:
        if len(self._waiting) < self._most:
            self._waiting.append(connection)
        else:
            connection.close()


@dataclass(frozen=True)
class _Body:
    """The bytes of an answer, which are read once and as a whole, or not at all."""

    answer: HTTPResponse
    length: int
    connection: HTTPConnection
    connections: _Connections

    def read(self) -> bytes:
        if self.answer.isclosed():
            return b""  # another request may have the connection by now
        try:
            content = self.answer.read()
        except IncompleteRead as cut:
            self.connection.close()
            raise IncompleteReadError(actual_bytes=len(cut.partial), expected_bytes=self.length) from cut
        except (OSError, HTTPException) as lost:
            self.connection.close()
            raise HTTPClientError(error=lost) from lost
        self.connections.give_back(self.connection)
        self._check(content)
        return content

    def close(self) -> None:
        if not self.answer.isclosed():
            self.answer.close()
            self.connection.close()

    def _check(self, content: bytes) -> None:
        for name, checksum in CHECKSUMS.items():
            expected = self.answer.headers.get(CHECKSUM + name)
            if expected is not None and "-" not in expected:  # it is of the object, and not of checksums of its parts
                found = checksum()
                found.update(content)
                if (made := b64encode(found.digest()).decode()) != expected:
                    raise FlexibleChecksumError(error_msg=f"The {name} of the bytes is {made}, and S3 says {expected}")


def trusted() -> str:
    """The certificates that boto3 accepts."""
    of_session = session()._session.get_config_variable("ca_bundle")  # AWS_CA_BUNDLE, or the profile's
    bundle = of_session or os.environ.get("REQUESTS_CA_BUNDLE") or True
    return str(get_cert_path(bundle))


def _answered(answer: HTTPResponse, connection: HTTPConnection, connections: _Connections) -> dict[str, Any]:
    length = int(answer.headers["content-length"])
    items = answer.headers.items()
    metadata = {name[len(METADATA) :]: text for name, text in items if name.lower().startswith(METADATA)}
    return {"ContentLength": length, "Metadata": metadata, "Body": _Body(answer, length, connection, connections)}


def _failed(status: int, code: str) -> ClientError:
    error = {"Code": code, "Message": "S3 cannot answer now"}
    return ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}}, "GetObject")


def _quoted(key: str) -> str:
    """As boto3 writes it into a path."""
    return quote(key, safe="/~")


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
