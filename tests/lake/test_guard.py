"""A lake whose bucket lets commits be overwritten says so, once, and is not refused."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from forebay.events import Event
from forebay.lake.guard import CommitsUnguarded, is_guarded, tell_unguarded
from infra.lake import COMMITS


class Bucket:
    def __init__(self, answer: Exception | None = None) -> None:
        self.answer, self.there = answer, dict[str, bytes]()

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, **condition: str) -> None:  # noqa: N803 (boto3's names)
        assert not condition
        if self.answer:
            raise self.answer
        self.there[f"{Bucket}/{Key}"] = Body

    def delete_object(self, *, Bucket: str, Key: str) -> None:  # noqa: N803
        del self.there[f"{Bucket}/{Key}"]


def refused(status: int) -> ClientError:
    return ClientError({"Error": {"Code": "?"}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")


@pytest.mark.parametrize(
    ("answer", "guarded"),
    [
        (None, False),
        (refused(403), True),
        (refused(503), None),
        (EndpointConnectionError(endpoint_url="http://nobody"), None),
    ],
    ids=["taken", "denied", "busy", "no answer"],
)
def test_a_bucket_is_guarded_if_it_denies_a_commit_without_a_condition(
    answer: Exception | None, guarded: bool | None
) -> None:
    s3, told = Bucket(answer), list[Event]()
    assert is_guarded("s3://lake/prefix", s3=s3) is guarded
    assert s3.there == {}
    tell_unguarded("s3://lake/prefix", emit=told.append, s3=s3)
    assert told == ([CommitsUnguarded(lake="s3://lake/prefix")] if guarded is False else [])


def test_the_question_lies_where_the_policy_of_the_deployed_lake_looks() -> None:
    """At the name of a commit, and below no table's folder."""

    class Asked(Bucket):
        def put_object(self, **asked: Any) -> None:
            assert fnmatch(asked["Key"], "prefix/_forebay/probe" + COMMITS.removeprefix("*"))
            raise refused(403)

    assert is_guarded("s3a://lake/prefix/", s3=Asked())


def test_a_lake_in_a_folder_is_asked_nothing() -> None:
    tell_unguarded("/tmp/lake", emit=lambda event: pytest.fail("told"), s3=None)
