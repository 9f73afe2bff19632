"""GETs of S3 objects without most of the work that boto3 does for each request, which takes a millisecond of CPU.

In: the arguments of boto3's `get_object`. Out: the parts of its answer that forebay reads, or the exceptions of botocore. boto3
makes the first request to a bucket: it finds the endpoint, and its request shows the host, the path and the region. Later
requests go there without it. Whatever S3 does not answer with bytes, boto3 asks again, and says what it means. It also follows
a bucket to another region. Only throttling and failures of S3 are not asked again at once.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from botocore.exceptions import ClientError
from botocore.httpchecksum import Crc32Checksum, Sha1Checksum, Sha256Checksum, StreamingChecksumBody
from botocore.httpsession import get_cert_path
from botocore.response import StreamingBody
from botocore.utils import get_environ_proxies
from urllib3 import HTTPConnectionPool, Timeout, connection_from_url
from urllib3.exceptions import HTTPError

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

    pool: HTTPConnectionPool
    host: str
    path: str
    region: str
    agent: str


class QuickGets:
    """`keys` gives the current credentials of the client `s3`. At most this many `connections` to a bucket are kept open."""

    def __init__(self, s3: Any, keys: Callable[[], Keys], connections: int, timeout_s: tuple[float, float]) -> None:
        connect_s, read_s = timeout_s
        self._s3, self._keys, self._connections = s3, keys, connections
        self._timeout = Timeout(connect=connect_s, read=read_s)
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
        try:
            answer: Any = place.pool.urlopen(
                "GET",
                f"{path}?{query}" if query else path,
                headers={**headers, "user-agent": place.agent},
                retries=False,
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
            if answer.status in (200, 206):
                return _answered(answer)
            said: bytes = answer.data
        except HTTPError:
            return None
        found = CODE.search(said)
        code = found[1].decode() if found else str(answer.status)
        if answer.status == 429 or answer.status >= 500 or code == KMS_THROTTLES:
            raise _failed(answer.status, code)
        return None

    def _by_boto3(self, request: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._s3.get_object(**request)
        place = self._place(self._of_thread.sent, request["Key"])
        if place is not None:
            self._places.setdefault(request["Bucket"], place)
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
        pool = connection_from_url(sent.url, maxsize=self._connections, timeout=self._timeout, **trusted(url.scheme))
        return _Place(pool, url.netloc, path, signed[1], headers["user-agent"])


def trusted(scheme: str) -> dict[str, str]:
    """The certificates that boto3 accepts."""
    if scheme != "https":
        return {}
    of_session = session()._session.get_config_variable("ca_bundle")  # AWS_CA_BUNDLE, or the profile's
    bundle = of_session or os.environ.get("REQUESTS_CA_BUNDLE") or True
    return {"cert_reqs": "CERT_REQUIRED", "ca_certs": get_cert_path(bundle)}


def _answered(answer: Any) -> dict[str, Any]:
    headers = answer.headers
    length = int(headers["content-length"])
    body = StreamingBody(answer, length)
    for name, checksum in CHECKSUMS.items():
        expected = headers.get(CHECKSUM + name)
        if expected is not None and "-" not in expected:  # it is of the object, and not of checksums of its parts
            body = StreamingChecksumBody(answer, length, checksum(), expected)
    metadata = {name[len(METADATA) :]: text for name, text in headers.items() if name.lower().startswith(METADATA)}
    return {"ContentLength": length, "Metadata": metadata, "Body": body}


def _failed(status: int, code: str) -> ClientError:
    error = {"Code": code, "Message": "S3 cannot answer now"}
    return ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": status}}, "GetObject")


def _quoted(key: str) -> str:
    """As boto3 writes it into a path."""
    return quote(key, safe="/~")


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
