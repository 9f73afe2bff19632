"""Files are announced as S3 would, each by its present version; the queue's refusals are tried again and named."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.response import StreamingBody

from forebay.errors import InvalidConfiguration, TryAgain
from forebay.notification.reading import read_message
from lambdas.announce_files.handler import Settings, announce
from lambdas.announce_files.listing import bucket_of

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
SETTINGS = Settings(landing_buckets="landing", queue_url="q", landing_prefix="in/")


class S3:
    def __init__(self, *keys: str, a_page: int = 2) -> None:
        self.keys, self.a_page = sorted(keys), a_page
        self.bodies: dict[str, bytes] = {}

    def said(self, n: int, key: str) -> dict[str, Any]:
        written = NOON + timedelta(hours=n)
        return {
            "Key": key,
            "ETag": f'"e{n}"',
            "Size": n,
            "LastModified": written,
            "VersionId": f"v{n}",
            "IsLatest": True,
        }

    def get_paginator(self, name: str) -> S3:
        assert name == "list_object_versions"
        return self

    def paginate(self, **asked: Any) -> Iterator[dict[str, Any]]:
        all_of_them = [self.said(n, key) for n, key in enumerate(self.keys) if key.startswith(asked["Prefix"])]
        left = [one for one in all_of_them if one["Key"] > asked.get("KeyMarker", "")]
        while left:
            page, left = left[: self.a_page], left[self.a_page :]
            older = {**page[0], "IsLatest": False, "VersionId": "older"}
            yield {"Versions": [*page, older], **({"NextKeyMarker": page[-1]["Key"]} if left else {})}

    def head_object(self, **asked: Any) -> dict[str, Any]:
        if asked["Key"] not in self.keys:
            raise ClientError({"Error": {"Code": "404", "Message": "Not Found"}}, "HeadObject")
        said = self.said(self.keys.index(asked["Key"]), asked["Key"])
        return {**said, "ContentLength": said["Size"], "VersionId": "null"}

    def get_object(self, **asked: Any) -> dict[str, Any]:
        body = self.bodies[f"{asked['Bucket']}/{asked['Key']}"]
        return {"Body": StreamingBody(io.BytesIO(body), len(body))}


class Sqs:
    """Refuses messages that hold a key, so many times."""

    def __init__(self, refuses: str = "", times: int = 0) -> None:
        self.refuses, self.times, self.bodies = refuses, times, list[str]()

    def send_message_batch(self, **asked: Any) -> dict[str, Any]:
        failed = []
        for entry in asked["Entries"]:
            if self.refuses and self.refuses in entry["MessageBody"] and self.times:
                self.times -= 1
                failed.append({"Id": entry["Id"], "SenderFault": False, "Code": "InternalError"})
            else:
                self.bodies.append(entry["MessageBody"])
        assert sum(len(entry["MessageBody"]) for entry in asked["Entries"]) <= 256 * 1024
        return {"Failed": failed} if failed else {}

    def files(self) -> list[tuple[str, str | None, str, int | None]]:
        """As the source reads them."""
        found = [file for body in self.bodies for file in read_message(body).files]
        return [(file.key, file.version_id, file.etag, file.size) for file in found]


def done(event: dict[str, Any], s3: S3, sqs: Sqs, *, pages: int = 10**6) -> dict[str, Any]:
    left = iter(range(pages))
    return announce(event, SETTINGS, s3=s3, sqs=sqs, time_left=lambda: next(left, None) is not None)


def test_what_lies_below_a_prefix_is_announced_by_its_present_version() -> None:
    s3, sqs = S3("in/a b+ü.json", "in/c.json", "in/folder/", "other/d.json"), Sqs()
    assert done({"prefix": "in/"}, s3, sqs) == {"announced": 2, "missing": [], "after": None}
    assert sqs.files() == [("in/a b+ü.json", "v0", "e0", 0), ("in/c.json", "v1", "e1", 1)]


def test_a_span_of_time_is_from_its_beginning_until_before_its_end() -> None:
    s3, sqs = S3(*(f"in/{n}" for n in range(5))), Sqs()
    span = {"since": "2026-05-01T13:00:00Z", "until": "2026-05-01T15:00:00"}
    assert done({"prefix": "in/", **span}, s3, sqs)["announced"] == 2
    assert [key for key, *_ in sqs.files()] == ["in/1", "in/2"]


def test_when_time_runs_out_the_next_call_goes_on_where_this_one_stopped() -> None:
    s3, sqs = S3(*(f"in/{n}" for n in range(5))), Sqs()
    first = done({"prefix": "in/"}, s3, sqs, pages=0)
    assert (first["announced"], first["after"]) == (2, "in/1")
    assert done({"prefix": "in/", "after": first["after"]}, s3, sqs)["announced"] == 3
    assert [key for key, *_ in sqs.files()] == [f"in/{n}" for n in range(5)]


@pytest.mark.parametrize("way", ["keys", "manifest"])
def test_a_long_list_goes_on_where_time_ran_out_too(way: str) -> None:
    """A million names take longer than a function may run."""
    keys = [f"in/{n:04}" for n in range(1500)]
    s3, sqs = S3(*keys), Sqs()
    s3.bodies["lists/long"] = "\n".join(keys).encode()
    event = {"keys": keys} if way == "keys" else {"manifest": "s3://lists/long"}
    first = done(event, s3, sqs, pages=0)
    assert (first["announced"], first["after"]) == (1000, "1000")
    assert done({**event, "after": "1000"}, s3, sqs, pages=0) == {"announced": 500, "missing": [], "after": None}
    assert [key for key, *_ in sqs.files()] == keys


@pytest.mark.parametrize("way", ["keys", "manifest"])
def test_named_files_are_announced_and_those_that_are_gone_are_said(way: str) -> None:
    s3, sqs = S3("in/a", "in/b"), Sqs()
    s3.bodies["lists/today"] = b"in/a\nin/gone\n\nin/b\n"
    event = {"keys": ["in/a", "in/gone", "in/b"]} if way == "keys" else {"manifest": "s3://lists/today"}
    assert done(event, s3, sqs) == {"announced": 2, "missing": ["in/gone"], "after": None}
    assert sqs.files() == [("in/a", None, "e0", 0), ("in/b", None, "e1", 1)]


def test_many_files_go_in_few_messages_that_fit_into_a_request() -> None:
    s3, sqs = S3(*(f"in/{n:04}{'ü' * 300}" for n in range(400)), a_page=1000), Sqs()
    assert done({"prefix": "in/"}, s3, sqs)["announced"] == 400
    assert len(sqs.bodies) < 60
    assert len(set(sqs.files())) == 400


def test_what_the_queue_refuses_once_is_sent_again() -> None:
    sqs = Sqs(refuses="in/a", times=2)
    assert done({"prefix": "in/"}, S3("in/a"), sqs)["announced"] == 1
    assert len(sqs.files()) == 1


def test_what_the_queue_goes_on_refusing_is_named_after_the_others_were_sent() -> None:
    sqs = Sqs(refuses="in/a", times=99)
    with pytest.raises(TryAgain, match=r"1 file was announced; the queue refused 2, such as in/a"):
        done({"prefix": "in/"}, S3("in/a", "in/b", "in/c"), sqs)
    assert [key for key, *_ in sqs.files()] == ["in/c"]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({}, "does not say which files"),
        ({"prefix": "in/", "keys": ["in/a"]}, "does not say which files"),
        ({"prefix": "elsewhere/"}, "key 'elsewhere/': is not a landed file"),
        ({"keys": ["in/a", "elsewhere/b"]}, "key 'elsewhere/b': is not a landed file"),
        ({"keys": "in/a"}, "event.keys: is not a list of keys: 'in/a'"),
        ({"keys": ["in/a", 7]}, "event.keys: is not a list of keys"),
        ({"manifest": "announce/today.txt"}, "event.manifest: is not the address of a list: 'announce/today.txt'"),
        ({"keys": ["in/a"], "after": "in/a"}, "event.after: is not a number of names: 'in/a'"),
        ({"prefix": "in/", "since": "yesterday"}, "event.since: is not a time: 'yesterday'"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_before_anything_is_announced(
    event: dict[str, Any], said: str
) -> None:
    sqs = Sqs()
    with pytest.raises(InvalidConfiguration, match=said):
        done(event, S3("in/a"), sqs)
    assert sqs.bodies == []


def test_of_several_buckets_one_must_be_named_and_no_other_is_asked() -> None:
    assert bucket_of({}, ["only"]) == "only"
    assert bucket_of({"bucket": "more"}, ["drops", "more"]) == "more"
    for event in ({}, {"bucket": "elsewhere"}):
        with pytest.raises(InvalidConfiguration, match="give one of drops, more"):
            bucket_of(event, ["drops", "more"])
