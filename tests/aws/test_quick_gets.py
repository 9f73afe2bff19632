"""GETs that do not go through boto3, against a server that says what the test wants."""

from __future__ import annotations

import base64
import gzip
import ssl
import subprocess
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore import UNSIGNED
from botocore import exceptions as aws
from botocore.config import Config
from botocore.credentials import ReadOnlyCredentials
from botocore.httpsession import get_cert_path

from forebay.aws.quick_gets import QuickGets, _Connections, trusted

KEYS = ReadOnlyCredentials("AKID", "secret", "token")
BODY = b'{"a":1}\n'


@dataclass
class Answer:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = BODY
    is_cut: bool = False
    closes: bool = False
    """Without saying so."""
    after_s: float = 0


class Server(ThreadingHTTPServer):
    """Gives these answers in turn, and then the object."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[Answer] = []
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.ports: set[int] = set()
        """Those of the connections."""
        self.closed = Event()
        self.address = f"http://127.0.0.1:{self.server_port}"

    def certify(self, name: str, folder: Path) -> str:
        """Answers only with TLS from now on. The file of the certificate."""
        made = f"openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=s3 -addext subjectAltName=DNS:{name}"
        subprocess.run([*made.split(), "-keyout", "key", "-out", "cert"], cwd=folder, check=True, capture_output=True)
        shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        shown.load_cert_chain(folder / "cert", folder / "key")
        self.socket = shown.wrap_socket(self.socket, server_side=True)
        self.address = f"https://{name}:{self.server_port}"
        return str(folder / "cert")

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.closed.set()

    @property
    def by_boto3(self) -> list[bool]:
        """Whether each request came through boto3."""
        return ["amz-sdk-request" in headers for _, headers in self.seen]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.ports.add(self.client_address[1])
        self.server.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        answer = self.server.answers.pop(0) if self.server.answers else Answer()
        if answer.is_cut:
            self.close_connection = True
            return
        time.sleep(answer.after_s)
        self.send_response(answer.status)
        for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)
        self.close_connection = self.close_connection or answer.closes

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield made
        made.shutdown()


def client(server: Server, **settings: Any) -> Any:
    config = Config(retries={"total_max_attempts": 1, "mode": "standard"}, **settings)
    keys = {"aws_access_key_id": "AKID", "aws_secret_access_key": "secret", "aws_session_token": "token"}
    return boto3.client("s3", endpoint_url=server.address, region_name="eu-west-1", config=config, **keys)


def gets(
    server: Server, keys: Any = lambda: KEYS, timeout_s: tuple[float, float] = (1, 1), **settings: Any
) -> QuickGets:
    """One that has asked for an object of the bucket before."""
    made = QuickGets(client(server, **settings), keys, 4, timeout_s)
    made.get_object(Bucket="landing", Key="first")["Body"].read()
    server.seen.clear()
    return made


def error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>because</Message></Error>".encode()


@pytest.mark.parametrize("key", ["in/a.json", "a b/ü+~//../x*y!", "/first/slash", "%41?&=#"])
@pytest.mark.parametrize(
    "pin", [{"IfMatch": '"abc"'}, {"VersionId": "a+/=b"}, {"VersionId": "null", "Range": "bytes=1-3"}]
)
def test_a_request_asks_for_the_same_as_that_of_boto3(server: Server, key: str, pin: dict[str, str]) -> None:
    tells = {"x-amz-meta-Game": "alpha", "x-amz-version-id": "v"}
    server.answers = [Answer(), Answer(206, tells), Answer(206, tells)]
    quick, request = gets(server), {"Bucket": "landing", "Key": key, **pin}

    mine, theirs = quick.get_object(**request), client(server).get_object(**request)

    assert server.by_boto3 == [False, True]
    assert [answer["Body"].read() for answer in (mine, theirs)] == [BODY, BODY]
    assert mine == {name: theirs[name] for name in ("ContentLength", "Metadata")} | {"Body": mine["Body"]}
    (path, headers), (path_of_boto3, headers_of_boto3) = server.seen
    assert path == path_of_boto3
    differ = {name for name in headers_of_boto3 if headers_of_boto3[name] != headers.get(name)}
    assert differ <= {"authorization", "x-amz-date", "user-agent", "amz-sdk-invocation-id", "amz-sdk-request"}


def test_a_bucket_is_first_asked_through_boto3(server: Server) -> None:
    quick = gets(server)
    for bucket in ("landing", "other", "other", "landing"):
        quick.get_object(Bucket=bucket, Key="k")["Body"].read()
    assert server.by_boto3 == [False, True, False, False]


@pytest.mark.parametrize(
    ("status", "code"), [(404, "NoSuchVersion"), (403, "InvalidObjectState"), (400, "ExpiredToken")]
)
def test_boto3_says_what_a_refusal_means(server: Server, status: int, code: str) -> None:
    quick = gets(server)
    server.answers = [Answer(status, body=error(code))] * 2
    with pytest.raises(aws.ClientError, match=f"{code}.*because"):
        quick.get_object(Bucket="landing", Key="k")
    assert server.by_boto3 == [False, True]


@pytest.mark.parametrize(
    ("status", "code"),
    [(429, "SlowDown"), (500, "InternalError"), (503, "SlowDown"), (400, "KMS.ThrottlingException")],
)
def test_throttling_is_not_asked_again_at_once(server: Server, status: int, code: str) -> None:
    quick = gets(server)
    server.answers = [Answer(status, body=error(code))]
    with pytest.raises(aws.ClientError, match=f"\\({code}\\)") as failed:
        quick.get_object(Bucket="landing", Key="k")
    assert failed.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    assert len(server.seen) == 1


def test_boto3_follows_a_bucket_to_another_place(server: Server) -> None:
    quick = gets(server)
    server.answers = [Answer(307, {"Location": f"{server.address}/elsewhere"})]
    assert quick.get_object(Bucket="landing", Key="k")["Body"].read() == BODY
    assert [(path, "amz-sdk-request" in headers) for path, headers in server.seen] == [
        ("/landing/k", False),
        ("/landing/k", True),
    ]


def test_bytes_arrive_as_they_were_put(server: Server) -> None:
    quick = gets(server)
    server.answers = [Answer(headers={"Content-Encoding": "gzip"}, body=gzip.compress(BODY))]
    assert quick.get_object(Bucket="landing", Key="k")["Body"].read() == gzip.compress(BODY)


def test_requests_without_a_signature_go_through_boto3(server: Server) -> None:
    gets(server, signature_version=UNSIGNED).get_object(Bucket="landing", Key="k")["Body"].read()
    assert server.by_boto3 == [True]


@pytest.mark.parametrize("name", ["", "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "AWS_CONFIG_FILE"])
def test_certificates_are_checked_against_those_that_boto3_trusts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text("[default]\nca_bundle = /etc/ours.pem\n")
    for other in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "AWS_CONFIG_FILE", "AWS_PROFILE"):
        monkeypatch.delenv(other, raising=False)
    if name:
        monkeypatch.setenv(name, str(config) if name == "AWS_CONFIG_FILE" else "/etc/ours.pem")
    expected = "/etc/ours.pem" if name else get_cert_path(True)
    assert trusted() == expected


def test_a_server_shows_a_certificate_of_its_own_name(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", server.certify("localhost", tmp_path))
    assert gets(server).get_object(Bucket="landing", Key="k")["Body"].read() == BODY
    assert server.by_boto3 == [False]
    other = _Connections(urlsplit(f"https://127.0.0.1:{server.server_port}"), 4, (1, 1))
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        other.open(other.take())


def test_connections_are_used_again_unless_the_server_has_closed_them(server: Server) -> None:
    quick = gets(server)
    for _ in range(3):
        quick.get_object(Bucket="landing", Key="k")["Body"].read()
    assert len(server.ports) == 2  # the first is boto3's
    server.answers = [Answer(headers={"Connection": "close"})]
    for _ in range(2):
        assert quick.get_object(Bucket="landing", Key="k")["Body"].read() == BODY
    assert (len(server.ports), server.by_boto3) == (3, [False] * 5)
    server.answers = [Answer(closes=True)]
    server.closed.clear()
    assert quick.get_object(Bucket="landing", Key="k")["Body"].read() == BODY
    assert server.closed.wait(5)
    assert quick.get_object(Bucket="landing", Key="k")["Body"].read() == BODY
    assert (len(server.ports), server.by_boto3) == (4, [False] * 7)


def test_boto3_asks_where_the_connection_is_lost(server: Server) -> None:
    quick = gets(server)
    server.answers = [Answer(is_cut=True)]
    assert quick.get_object(Bucket="landing", Key="k")["Body"].read() == BODY
    assert server.by_boto3 == [False, True]


def test_an_answer_may_take_longer_than_a_connection(server: Server) -> None:
    quick = gets(server, timeout_s=(0.2, 5))
    server.answers = [Answer(after_s=0.4)]
    assert quick.get_object(Bucket="landing", Key="k")["Body"].read() == BODY
    assert server.by_boto3 == [False]


@pytest.mark.parametrize("of", [BODY, b"another"])
def test_the_checksum_of_the_object_is_checked(server: Server, of: bytes) -> None:
    quick = gets(server)
    server.answers = [Answer(headers={"x-amz-checksum-crc32": base64.b64encode(zlib.crc32(of).to_bytes(4)).decode()})]
    body = quick.get_object(Bucket="landing", Key="k")["Body"]
    if of == BODY:
        assert body.read() == BODY
    else:
        with pytest.raises(aws.FlexibleChecksumError):
            body.read()


def test_a_checksum_of_parts_is_not_that_of_the_bytes(server: Server) -> None:
    quick = gets(server)
    server.answers = [Answer(headers={"x-amz-checksum-crc32": "abcdef==-2"})]
    assert quick.get_object(Bucket="landing", Key="k")["Body"].read() == BODY


def test_a_body_that_ends_early_is_an_error_of_botocore(server: Server) -> None:
    quick = gets(server)
    server.answers = [Answer(headers={"Content-Length": "20", "Connection": "close"})]
    with pytest.raises((aws.IncompleteReadError, aws.HTTPClientError)):
        quick.get_object(Bucket="landing", Key="k")["Body"].read()


def test_renewed_credentials_sign_the_next_request(server: Server) -> None:
    now = [KEYS]
    quick = gets(server, lambda: now[0])
    now[0] = ReadOnlyCredentials("AKID2", "other", None)
    quick.get_object(Bucket="landing", Key="k")["Body"].read()
    ((_, headers),) = server.seen
    assert "Credential=AKID2/" in headers["authorization"]
    assert "x-amz-security-token" not in headers


@pytest.mark.parametrize(("name", "is_between"), [("http_proxy", True), ("https_proxy", False)])
def test_behind_a_proxy_boto3_makes_all_requests(
    server: Server, monkeypatch: pytest.MonkeyPatch, name: str, is_between: bool
) -> None:
    for other in ("no_proxy", "NO_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, server.address)
    gets(server).get_object(Bucket="landing", Key="k")["Body"].read()
    assert server.by_boto3 == [is_between]


def test_a_body_is_read_once_and_its_connection_waits_once(server: Server) -> None:
    quick = gets(server)
    body = quick.get_object(Bucket="landing", Key="k")["Body"]
    assert (body.read(), body.read()) == (BODY, b"")
    body.close()
    place = quick._places["landing"]
    first, second = place.connections.take(), place.connections.take()
    assert first is not second
    assert first.sock is not None


def test_a_bucket_has_one_place_however_often_boto3_is_asked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates are loaded with each place."""
    quick = gets(server)
    monkeypatch.setattr(quick, "_place", pytest.fail)
    server.answers = [Answer(is_cut=True)]
    assert quick.get_object(Bucket="landing", Key="k")["Body"].read() == BODY
    assert server.by_boto3[-1]
