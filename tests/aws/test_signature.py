"""The signature of a GET is botocore's."""

from __future__ import annotations

from datetime import UTC, datetime
from unittest.mock import patch
from urllib.parse import quote

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given
from hypothesis import strategies as st

from forebay.aws.signature import signed_get

NOW = datetime(2026, 11, 27, 9, 8, 7, tzinfo=UTC)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
SECRET = st.text("abcXYZ019+/", min_size=16, max_size=40)


@given(
    key=TEXT,
    version=st.none() | TEXT,
    secret=SECRET,
    token=st.none() | SECRET,
    headers=st.fixed_dictionaries({}, optional={"range": st.just("bytes=5-9"), "if-match": st.just('"0a1b"')}),
)
def test_a_get_has_the_headers_that_botocore_would_give_it(
    key: str, version: str | None, secret: str, token: str | None, headers: dict[str, str]
) -> None:
    keys = ReadOnlyCredentials("AKID", secret, token)
    host, path = "landing.s3.cn-north-1.amazonaws.com.cn", "/" + quote(key, safe="/~")
    query = "" if version is None else f"versionId={quote(version, safe='')}"

    request = AWSRequest("GET", f"https://{host}{path}?{query}", headers=headers)
    with patch("botocore.auth.get_current_datetime", lambda: NOW.replace(tzinfo=None)):
        S3SigV4Auth(keys, "s3", "cn-north-1").add_auth(request)

    signed = signed_get(host, path, query, headers, keys, "cn-north-1", NOW)
    assert signed == {"host": host, **{name.lower(): value for name, value in request.headers.items()}}
