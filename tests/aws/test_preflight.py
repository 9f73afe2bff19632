"""What cannot work is one line at the start, which names the thing and says what to do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, NoRegionError

from forebay.aws.client import queue_client
from forebay.aws.preflight import check_lake, check_lake_and_clock, check_queue
from forebay.errors import InvalidConfiguration

URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/arrivals"


class Refusing:
    """A client whose every call fails as it was told."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def get_queue_attributes(self, **_: Any) -> None:
        raise self.error

    head_bucket = get_queue_attributes


def answer(code: str, message: str = "") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "Call")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (answer("AWS.SimpleQueueService.NonExistentQueue"), "there is no such queue"),
        (answer("AccessDenied"), "may not use it"),
        (answer("ExpiredToken", "The token has expired"), "sign in again"),
        (answer("InvalidClientTokenId"), "AWS_PROFILE"),
        (NoCredentialsError(), "no AWS credentials were found"),
        (NoRegionError(), "set AWS_REGION"),
        (EndpointConnectionError(endpoint_url="http://127.0.0.1:9"), "does not answer"),
    ],
)
def test_a_queue_that_cannot_be_used_is_told_in_a_line(error: Exception, says: str) -> None:
    with pytest.raises(InvalidConfiguration, match=says) as refused:
        check_queue(URL, sqs=Refusing(error))
    assert str(refused.value).startswith(f"queue {URL}: ")
    assert "\n" not in str(refused.value)


def test_a_queue_that_is_no_url_is_told() -> None:
    with pytest.raises(InvalidConfiguration, match="is not a URL"):
        check_queue("arrivals", sqs=None)


def test_the_endpoint_of_a_twin_that_has_ended_is_told_with_the_command_that_starts_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FOREBAY_LOCAL", "/home/me/shop/.forebay/local")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(
        InvalidConfiguration, match=r"listening there\?; if it was a twin, `forebay local up` starts another"
    ):
        check_queue(URL, sqs=Refusing(EndpointConnectionError(endpoint_url="http://127.0.0.1:9")))


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL"])
def test_an_endpoint_from_the_environment_is_named_by_the_variable_that_set_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_SQS", raising=False)
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    with pytest.raises(InvalidConfiguration, match=rf"\({name} is http://127\.0\.0\.1:9: is a server listening there"):
        check_queue(URL, sqs=Refusing(EndpointConnectionError(endpoint_url="http://127.0.0.1:9")))


@pytest.mark.parametrize(("code", "says"), [("404", "there is no bucket studio-lake"), ("403", "may not use it")])
def test_a_lake_that_cannot_be_used_is_told_in_a_line(code: str, says: str) -> None:
    with pytest.raises(InvalidConfiguration, match=says):
        check_lake("s3://studio-lake/x", s3=Refusing(answer(code)))


class Dated:
    """Answers at this time."""

    def __init__(self, at: datetime | str) -> None:
        self._headers = {"date": at if isinstance(at, str) else format_datetime(at, usegmt=True)}

    def head_bucket(self, **_: str) -> dict[str, Any]:
        return {"ResponseMetadata": {"HTTPHeaders": self._headers}}


@pytest.mark.parametrize("hours", [-24 * 400, -2, -0.3, 0.3, 24 * 365])
def test_a_machine_whose_clock_is_wrong_deletes_nothing_by_it(hours: float) -> None:
    """The client of AWS corrects its signatures by S3's clock, so no request is refused for it."""
    now = datetime(2026, 5, 5, 12, tzinfo=UTC)
    with pytest.raises(InvalidConfiguration, match="clock of this machine: says 2026-05-05 12:00 UTC, and S3's says"):
        check_lake_and_clock("s3://studio-lake/x", now, s3=Dated(now + timedelta(hours=hours)))


@pytest.mark.parametrize("minutes", [-14, 0, 14])
def test_clocks_that_differ_by_minutes_are_alike(minutes: int) -> None:
    now = datetime(2026, 5, 5, 12, tzinfo=UTC)
    check_lake_and_clock("s3://studio-lake/x", now, s3=Dated(now + timedelta(minutes=minutes)))
    check_lake_and_clock("file:///tmp/lake", now, s3=Refusing(NoCredentialsError()))


@pytest.mark.parametrize("said", ["", "soon", "Tue, 05 May 2026 13:00:00"])
def test_a_server_that_does_not_say_its_time_stops_nothing(said: str) -> None:
    """S3 says it, but not every server with its protocol."""
    check_lake_and_clock("s3://lake/x", datetime(2026, 5, 5, 12, tzinfo=UTC), s3=Dated(said))


def test_a_lake_that_cannot_be_asked_for_its_time_is_told_in_a_line() -> None:
    with pytest.raises(InvalidConfiguration, match="lake s3://studio-lake/x: cannot be used: SlowDown"):
        check_lake_and_clock("s3://studio-lake/x", datetime.now(UTC), s3=Refusing(answer("SlowDown")))


def test_a_lake_in_a_folder_needs_no_aws() -> None:
    check_lake("file:///tmp/lake", s3=Refusing(NoCredentialsError()))


@pytest.mark.parametrize(
    ("url", "region"), [(URL, "eu-west-1"), ("https://sqs.us-gov-west-1.amazonaws.com/1/q", "us-gov-west-1")]
)
def test_a_queue_is_asked_in_the_region_of_its_url(monkeypatch: pytest.MonkeyPatch, url: str, region: str) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    assert queue_client(url).meta.region_name == region
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    assert queue_client(url).meta.region_name == region
    assert queue_client("http://127.0.0.1:4566/000000000000/landed").meta.region_name == "ap-south-1"
