"""Only programs of this machine are answered."""

from __future__ import annotations

from typing import Any

import pytest

from forebay_local.twin.door import guarded

ASKED = [
    ({"HTTP_HOST": "127.0.0.1:5000"}, True),
    ({"HTTP_HOST": "localhost:5000"}, True),
    ({"HTTP_HOST": "LOCALHOST"}, True),
    ({"HTTP_HOST": "[::1]:5000"}, True),
    ({"HTTP_HOST": "bucket.s3.localhost:5000"}, True),
    ({"HTTP_HOST": "rebound.example.com:5000"}, False),
    ({"HTTP_HOST": "127.0.0.1.example.com:5000"}, False),
    ({"HTTP_HOST": "notlocalhost:5000"}, False),
    ({}, False),
    ({"HTTP_HOST": "127.0.0.1:5000", "HTTP_ORIGIN": "https://example.com"}, False),
    ({"HTTP_HOST": "127.0.0.1:5000", "HTTP_ORIGIN": "null"}, False),
]


@pytest.mark.parametrize(("headers", "answered"), ASKED)
def test_a_request_for_another_host_or_of_a_page_is_refused(headers: dict[str, str], answered: bool) -> None:
    said: list[str] = []

    def application(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [b"well"]

    body = b"".join(guarded(application)(headers, lambda status, more, *_: said.append(status)))  # type: ignore[arg-type]
    assert (said, body == b"well") == (["200 OK" if answered else "403 Forbidden"], answered)
