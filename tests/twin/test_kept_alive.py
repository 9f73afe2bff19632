"""Many requests over one connection to the twin, also after answers without a body and requests that nobody read."""

from __future__ import annotations

from collections.abc import Iterator
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from forebay_local.twin.clients import A_PERSON, access_key
from forebay_local.twin.twin import Twin

CONTENT = b"x" * 100_000


@pytest.fixture
def connection(twin: Twin) -> Iterator[HTTPConnection]:
    address = urlsplit(twin.endpoint)
    kept = HTTPConnection(address.hostname or "", address.port, timeout=60)
    yield kept
    kept.close()


def signed(twin: Twin) -> dict[str, str]:
    key = access_key(A_PERSON, twin.endpoint)["AWS_ACCESS_KEY_ID"]
    scope = f"{key}/20260101/{twin.region}/s3/aws4_request"
    return {"Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=none"}


def test_answers_with_and_without_a_body_leave_the_connection_to_the_next_request(
    twin: Twin, connection: HTTPConnection
) -> None:
    key = f"/{twin.landing_bucket}/kept.bin"
    requests = [
        ("PUT", key, CONTENT, 200, b""),
        ("HEAD", key, None, 200, b""),
        ("GET", key, None, 200, CONTENT),
        ("GET", f"{key}.no", None, 404, None),
        ("DELETE", key, None, 204, b""),
        ("GET", key, None, 404, None),
    ]
    connection.connect()
    opened = connection.sock
    for method, path, body, status, told in requests:
        connection.request(method, path, body, signed(twin))
        answer = connection.getresponse()
        content = answer.read()
        assert (answer.status, connection.sock) == (status, opened), (method, path)
        assert told is None or content == told


@pytest.mark.parametrize("chunked", [False, True])
def test_what_a_refused_request_sends_is_not_taken_for_the_next_request(
    twin: Twin, connection: HTTPConnection, chunked: bool
) -> None:
    body = iter([CONTENT, CONTENT]) if chunked else CONTENT
    connection.request("PUT", f"/{twin.landing_bucket}/no", body, {"Origin": "a page"}, encode_chunked=chunked)
    refused = connection.getresponse()
    refused.read()
    connection.request("GET", f"/{twin.landing_bucket}", headers=signed(twin))
    answer = connection.getresponse()
    answer.read()
    assert (refused.status, answer.status) == (403, 200)


def test_a_client_that_waits_to_be_told_to_send_its_content_is_told_so(twin: Twin, connection: HTTPConnection) -> None:
    connection.putrequest("PUT", f"/{twin.landing_bucket}/waited.bin")
    for name, value in {**signed(twin), "Expect": "100-continue", "Content-Length": str(len(CONTENT))}.items():
        connection.putheader(name, value)
    connection.endheaders()
    told = connection.sock.recv(100)
    connection.send(CONTENT)
    answer = connection.getresponse()
    answer.read()
    assert (told, answer.status) == (b"HTTP/1.1 100 Continue\r\n\r\n", 200)
