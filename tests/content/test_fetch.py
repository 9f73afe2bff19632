"""One GET, what S3's answer means, and when it is asked again."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from botocore import exceptions as aws
from botocore.response import StreamingBody
from urllib3.exceptions import ProtocolError

from forebay.content.fetch import GetObject, Metadata, OrCopy, Retrying
from forebay.content.outcome import Unread
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.errors import TryAgain
from forebay.landed_file import LandedFile

FILE = LandedFile("landing", "in/file.json", 7, etag="abc")


class Answers:
    """An S3 client that gives these answers in turn, and keeps the requests."""

    def __init__(self, *answers: Any) -> None:
        self.answers: Iterator[Any] = iter(answers)
        self.requests: list[dict[str, Any]] = []

    def get_object(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]


def body(data: bytes, length: int | None = None) -> dict[str, Any]:
    length = len(data) if length is None else length
    return {"ContentLength": length, "Body": StreamingBody(io.BytesIO(data), length)}


def refusal(status: int, code: str) -> aws.ClientError:
    return aws.ClientError(
        {"Error": {"Code": code, "Message": "because"}, "ResponseMetadata": {"HTTPStatusCode": status}}, "GetObject"
    )


def get(*answers: Any, attempts: int = 4, file: LandedFile = FILE) -> tuple[bytes | Unread, Answers, list[float]]:
    s3, pauses = Answers(*answers), list[float]()
    asking = Retrying(GetObject(s3, max_bytes=1000), attempts, sleep=pauses.append, draw=lambda: 1.0)
    return asking(file), s3, pauses


def moving(rule: str = 'move = "s3://archive"') -> Service:
    return parse_service({"service.toml": f'name = "games"\nafter_load = {{ {rule} }}\n[[tables]]\nname = "t"\n'})


@pytest.mark.parametrize("asked", ["", "games"])
@pytest.mark.parametrize("moved", ["", "games"])
def test_the_copy_of_a_file_is_found_by_whichever_id_the_service_knew_it(asked: str, moved: str) -> None:
    """The first service of a lake has ids without its name, and so has every file that `replay-into` or `where` reads."""
    place = f"landing/in/{replace(FILE, service=moved).file_id}/file.json"

    def get(file: LandedFile, start: int = 0, stop: int | None = None) -> bytes | Unread:
        return b"{}" if (file.bucket, file.key) == ("archive", place) else Unread("missing", "no-such-key")

    assert OrCopy.over(get, moving())(replace(FILE, service=asked)) == b"{}"


def test_a_file_that_was_moved_is_read_from_its_copy_with_its_metadata() -> None:
    rule, said = moving('move = "s3://archive/old"'), Metadata()
    gone = [refusal(404, "NoSuchKey"), refusal(412, "PreconditionFailed")]
    for answer in gone:
        s3 = Answers(answer, {**body(b"{}"), "Metadata": {"game": "alpha"}})
        assert OrCopy.over(GetObject(s3, 1000, said), rule, said)(FILE, 3, 5) == b"{}"
        assert said[FILE] == {"game": "alpha"}
        place = f"old/landing/in/{FILE.file_id}/file.json"
        assert s3.requests[1] == {"Bucket": "archive", "Key": place, "Range": "bytes=3-4"}


@pytest.mark.parametrize("rule", ['move = "s3://archive/new"', "delete = true", ""])
def test_a_file_that_was_moved_to_a_former_archive_is_read_from_there(rule: str) -> None:
    former = 'former_archives = ["s3://older", "s3://archive/old"]\n'
    after = f"after_load = {{ {rule} }}\n" if rule else ""
    declared = parse_service({"service.toml": f'name = "games"\n{former}{after}[[tables]]\nname = "t"\n'})
    asked = []

    def get(file: LandedFile, start: int = 0, stop: int | None = None) -> bytes | Unread:
        asked.append(file.uri)
        found = file.uri == f"s3://archive/old/landing/in/{FILE.file_id}/file.json"
        return b"{}" if found else Unread("missing", "no-such-key")

    assert OrCopy.over(get, declared)(FILE) == b"{}"
    assert [uri.startswith("s3://archive/new/") for uri in asked].count(True) == ("move" in rule) * 2


def test_a_copy_in_a_former_archive_is_read_although_the_archive_of_today_gives_no_answer() -> None:
    declared = moving().model_copy(update={"former_archives": ("s3://old/",)})
    denied = refusal(403, "AccessDenied")  # under both ids by which the service may know the file
    s3 = Answers(refusal(404, "NoSuchKey"), denied, denied, body(b"{}"))
    assert OrCopy.over(GetObject(s3, 1000), declared)(FILE) == b"{}"


def test_two_pieces_of_a_moved_file_may_be_read_at_once() -> None:
    rule, said, pieces = moving(), Metadata(), list[bytes | Unread]()

    def get(file: LandedFile, start: int = 0, stop: int | None = None) -> bytes | Unread:
        if file == FILE:
            return Unread("missing", "no-such-key")
        said[file] = {"game": "alpha"}
        if start:
            pieces.append(OrCopy.over(get, rule, said)(FILE))
        return b"{}"

    assert OrCopy.over(get, rule, said)(FILE, 1) == b"{}"
    assert (pieces, said[FILE]) == ([b"{}"], {"game": "alpha"})


@pytest.mark.parametrize(
    ("copy", "outcome", "says"),
    [
        (refusal(404, "NoSuchKey"), "missing", "404 NoSuchKey: because"),
        (refusal(403, "AccessDenied"), "missing", "404 NoSuchKey: because; its copy s3://archive/.* is denied: 403"),
        (refusal(403, "InvalidObjectState"), "unavailable", "its copy s3://archive/.* is unavailable: 403 Invalid"),
    ],
)
def test_a_copy_that_is_not_there_leaves_the_file_missing_and_one_that_sleeps_is_waited_for(
    copy: Exception, outcome: str, says: str
) -> None:
    gone = refusal(404, "NoSuchKey")
    read = OrCopy.over(GetObject(Answers(gone, copy, gone), 1000), moving())(FILE)
    assert isinstance(read, Unread)
    assert read.outcome == outcome
    assert re.match(f".*{says}", read.detail)


def test_a_copy_is_looked_for_only_where_files_are_moved() -> None:
    for rule in (moving("delete = true"), moving().model_copy(update={"after_load": None})):
        s3 = Answers(refusal(404, "NoSuchKey"))
        assert isinstance(OrCopy.over(GetObject(s3, 1000), rule)(FILE), Unread)
    there = Answers(body(b"{}"))
    assert OrCopy.over(GetObject(there, 1000), moving())(FILE) == b"{}"


@pytest.mark.parametrize("gone", [refusal(404, "NoSuchKey"), refusal(403, "AccessDenied")])
@pytest.mark.parametrize("other", [refusal(404, "NoSuchKey"), refusal(403, "AccessDenied")])
def test_a_role_that_may_not_list_a_bucket_finds_the_copy_all_the_same(gone: Exception, other: Exception) -> None:
    """S3 answers 403 for what is not there: the file in the landing bucket, or its copy under another of its ids."""
    assert OrCopy.over(GetObject(Answers(gone, other, body(b"{}")), 1000), moving())(FILE) == b"{}"


def test_a_file_that_is_denied_everywhere_names_the_rights_that_are_missing() -> None:
    denied = OrCopy.over(GetObject(Answers(*[refusal(403, "AccessDenied")] * 3), 1000), moving())(FILE)
    assert isinstance(denied, Unread)
    assert denied.outcome == "denied"
    assert re.search(r"no s3:ListBucket on landing\); its copy .* no s3:ListBucket on archive\)", denied.detail)


def test_a_file_whose_key_is_disabled_is_not_looked_for_elsewhere() -> None:
    """It is there."""
    s3 = Answers(refusal(400, "KMS.DisabledException"))
    denied = OrCopy.over(GetObject(s3, 1000), moving())(FILE)
    assert isinstance(denied, Unread)
    assert denied.reason == "key-denied"


def test_what_was_put_with_the_object_is_told_where_somebody_wants_it() -> None:
    said: Metadata = {}
    answer = {**body(b"{}"), "Metadata": {"game": "alpha"}}
    assert GetObject(Answers(answer), 1000, said)(FILE) == b"{}"
    assert said == {FILE: {"game": "alpha"}}


PINNED = {
    "an unversioned file by its etag": (LandedFile("b", "k", etag="abc"), {"IfMatch": '"abc"'}),
    "a versioned file by its version": (LandedFile("b", "k", etag="abc", version_id="v1"), {"VersionId": "v1"}),
    "one from before versioning by both": (
        LandedFile("b", "k", etag="abc", version_id="null"),
        {"VersionId": "null", "IfMatch": '"abc"'},
    ),
    "nothing is known": (LandedFile("b", "k"), {}),
}


@pytest.mark.parametrize(("file", "pin"), PINNED.values(), ids=PINNED.keys())
def test_a_request_is_pinned_to_what_was_announced(file: LandedFile, pin: dict[str, str]) -> None:
    content, s3, _ = get(body(b"content"), file=file)
    assert content == b"content"
    assert s3.requests == [{"Bucket": "b", "Key": "k", **pin}]


@pytest.mark.parametrize(
    ("start", "stop", "expected"), [(0, None, None), (0, 10, "bytes=0-9"), (5, 10, "bytes=5-9"), (5, None, "bytes=5-")]
)
def test_a_range_is_asked_for_as_http_counts(start: int, stop: int | None, expected: str | None) -> None:
    s3 = Answers(body(b"x"))
    GetObject(s3, 1000)(FILE, start, stop)
    assert s3.requests[0].get("Range") == expected


MEANINGS = [
    (404, "NoSuchKey", "missing", "no-such-key"),
    (404, "NoSuchVersion", "missing", "no-such-version"),
    (404, "NoSuchBucket", "missing", "no-such-bucket"),
    (404, "404", "missing", "no-such-key"),
    (405, "MethodNotAllowed", "missing", "delete-marker"),
    (412, "PreconditionFailed", "changed", "etag-differs"),
    (403, "AccessDenied", "denied", "access-denied"),
    (403, "AllAccessDisabled", "denied", "access-denied"),
    (400, "KMS.DisabledException", "denied", "key-denied"),
    (403, "InvalidObjectState", "unavailable", "archived"),
    (416, "InvalidRange", "unreadable", "range-refused"),
    (400, "InvalidArgument", "unavailable", "refused-by-s3"),
]


@pytest.mark.parametrize(("status", "code", "outcome", "reason"), MEANINGS)
def test_what_s3_says_of_a_file_is_an_outcome_and_is_asked_once(
    status: int, code: str, outcome: str, reason: str
) -> None:
    answer, s3, pauses = get(refusal(status, code))
    assert isinstance(answer, Unread)
    assert (answer.outcome, answer.reason) == (outcome, reason)
    assert f"{status} {code}: because" in answer.detail
    assert (len(s3.requests), pauses) == (1, [])


PASSING = {
    "throttled": refusal(503, "SlowDown"),
    "a failure of s3": refusal(500, "InternalError"),
    "a bad gateway": refusal(502, "502"),
    "too many requests": refusal(429, "TooManyRequests"),
    "a slow upload of our request": refusal(400, "RequestTimeout"),
    "throttled by kms": refusal(400, "KMS.ThrottlingException"),
    "a refused connection": aws.EndpointConnectionError(endpoint_url="http://s3"),
    "a connection that closed": aws.ConnectionClosedError(endpoint_url="http://s3"),
    "a connection reset": aws.HTTPClientError(error=ConnectionResetError()),
    "a read that took too long": aws.ReadTimeoutError(endpoint_url="http://s3"),
    "a body that ends early": body(b"con", length=7),
    "a body with another checksum": aws.FlexibleChecksumError(error_msg="crc32"),
}


@pytest.mark.parametrize("passing", PASSING.values(), ids=PASSING.keys())
def test_what_may_pass_is_asked_again(passing: Any) -> None:
    answer, s3, _ = get(passing, body(b"content"))
    assert (answer, len(s3.requests)) == (b"content", 2)


def test_a_connection_that_breaks_within_the_body_is_asked_again() -> None:
    class Broken:
        def read(self) -> bytes:
            raise aws.ResponseStreamingError(error=ProtocolError("reset"))

    answer, _, _ = get({"ContentLength": 7, "Body": Broken()}, body(b"content"))
    assert answer == b"content"


def test_pauses_double_and_a_file_that_s3_does_not_give_is_unavailable_not_bad() -> None:
    answer, s3, pauses = get(*[refusal(503, "SlowDown")] * 9, attempts=9)
    assert isinstance(answer, Unread)
    assert (answer.outcome, answer.reason, len(s3.requests)) == ("unavailable", "gave-up", 9)
    assert pauses == [0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0, 10.0]


def test_pauses_are_drawn_at_random_so_that_readers_do_not_come_back_together() -> None:
    pauses: list[float] = []
    draws = iter([0.25, 0.5, 0.0])
    always = Answers(*[refusal(503, "SlowDown")] * 4)
    Retrying(GetObject(always, 1000), 4, sleep=pauses.append, draw=lambda: next(draws))(FILE)
    assert pauses == [0.1, 0.4, 0.0]


@pytest.mark.parametrize(
    "code", ["ExpiredToken", "SignatureDoesNotMatch", "InvalidAccessKeyId", "RequestTimeTooSkewed"]
)
def test_no_file_is_blamed_for_what_is_wrong_with_us(code: str) -> None:
    with pytest.raises(aws.ClientError, match=code):
        get(refusal(403, code))


def test_missing_credentials_are_raised() -> None:
    with pytest.raises(aws.NoCredentialsError):
        get(aws.NoCredentialsError())


def test_a_file_that_is_too_large_is_refused_without_reading_it() -> None:
    answer = body(b"x" * 1001)
    refused, _, _ = get(answer)
    assert isinstance(refused, Unread)
    assert (refused.outcome, refused.reason) == ("unreadable", "too-large")
    assert answer["Body"]._raw_stream.closed


def test_one_attempt_says_try_again() -> None:
    with pytest.raises(TryAgain, match=r"s3://landing/in/file\.json.*SlowDown"):
        GetObject(Answers(refusal(503, "SlowDown")), 1000)(FILE)
