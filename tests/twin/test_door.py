"""Only programs of this machine are answered, and only those that have the twin's key."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from forebay_local.twin import clients
from forebay_local.twin.clients import access_key, client, know, new_key
from forebay_local.twin.door import guarded
from forebay_local.twin.twin import Twin

HERE = {"HTTP_HOST": "127.0.0.1:5000"}
SIGNED = {"HTTP_AUTHORIZATION": "AWS4-HMAC-SHA256 Credential={}/20261122/eu-west-1/s3/aws4_request, SignedHeaders=host"}
SIGNED_OF_OLD = {"HTTP_AUTHORIZATION": "AWS {}:c2lnbmF0dXJl"}
PRESIGNED = {"QUERY_STRING": "list-type=2&X-Amz-Credential={}%2F20261122%2Feu-west-1%2Fs3%2Faws4_request"}
PRESIGNED_OF_OLD = {"QUERY_STRING": "AWSAccessKeyId={}&Signature=x"}


def answered(headers: dict[str, str]) -> bool:
    said: list[str] = []

    def application(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        return [b"well"]

    guard = guarded(application, "secret", lambda access_key_id: access_key_id == "ASIAVENDED")
    body = b"".join(guard(headers, lambda status, more, *_: said.append(status)))  # type: ignore[arg-type]
    assert said == (["200 OK"] if body == b"well" else ["403 Forbidden"])
    return said == ["200 OK"]


def signed_with(access_key_id: str, how: dict[str, str] = SIGNED) -> dict[str, str]:
    return {name: text.format(access_key_id) for name, text in how.items()}


@pytest.mark.parametrize(
    ("headers", "welcome"),
    [
        (HERE, True),
        ({"HTTP_HOST": "localhost:5000"}, True),
        ({"HTTP_HOST": "LOCALHOST"}, True),
        ({"HTTP_HOST": "[::1]:5000"}, True),
        ({"HTTP_HOST": "bucket.s3.localhost:5000"}, True),
        ({"HTTP_HOST": "rebound.example.com:5000"}, False),
        ({"HTTP_HOST": "127.0.0.1.example.com:5000"}, False),
        ({"HTTP_HOST": "notlocalhost:5000"}, False),
        ({}, False),
        ({**HERE, "HTTP_ORIGIN": "https://example.com"}, False),
        ({**HERE, "HTTP_ORIGIN": "null"}, False),
    ],
)
def test_a_request_for_another_host_or_of_a_page_is_refused(headers: dict[str, str], welcome: bool) -> None:
    assert answered({**headers, **signed_with("local~secret")}) == welcome


@pytest.mark.parametrize("how", [SIGNED, SIGNED_OF_OLD, PRESIGNED, PRESIGNED_OF_OLD], ids=str)
@pytest.mark.parametrize(
    ("access_key_id", "welcome"),
    [
        ("local~secret", True),
        ("studio-dev-ingest-role~secret", True),
        ("local~other~secret", True),
        ("ASIAVENDED", True),
        ("local", False),
        ("local~", False),
        ("local~Secret", False),
        ("local~secrets", False),
        ("ASIAFORGED", False),
        ("löcal", False),
    ],
)
def test_only_an_access_key_id_with_the_key_is_answered(how: dict[str, str], access_key_id: str, welcome: bool) -> None:
    assert answered({**HERE, **signed_with(access_key_id, how)}) == welcome


def test_who_signs_nothing_is_refused() -> None:
    assert not answered(HERE)
    assert not answered({**HERE, "HTTP_AUTHORIZATION": "Bearer secret", "QUERY_STRING": "key=secret"})


def test_an_environment_may_hold_the_keys_of_two_twins() -> None:
    here, there = "http://127.0.0.1:1", "http://127.0.0.1:2"
    know(here, "secret")
    know(there, "other")
    assert access_key("local", here, there)["AWS_ACCESS_KEY_ID"] == "local~secret~other"
    assert clients.who_of("local~secret~other") == "local"
    assert new_key() != new_key()


def test_a_running_twin_refuses_whoever_lacks_its_key_and_answers_roles_that_it_lent(twin: Twin) -> None:
    def buckets(access_key_id: str, secret: str = "local", token: str | None = None) -> int:
        session = boto3.session.Session(access_key_id, secret, token, region_name=twin.region)
        return len(session.client("s3", endpoint_url=twin.endpoint).list_buckets()["Buckets"])

    for stranger in ("local", "test", "local~guessed"):
        with pytest.raises(ClientError, match="403"):
            buckets(stranger)
    lent = client("sts", twin.endpoint, twin.region).assume_role(
        RoleArn="arn:aws:iam::123456789012:role/somebody", RoleSessionName="test"
    )["Credentials"]
    assert buckets(twin.env["AWS_ACCESS_KEY_ID"]) == buckets(
        lent["AccessKeyId"], lent["SecretAccessKey"], lent["SessionToken"]
    )
    assert (twin.state / "twin.json").stat().st_mode & 0o077 == 0
