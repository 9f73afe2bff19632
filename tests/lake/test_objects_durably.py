"""Small durable objects: of two writers of one name exactly one wins; on a disk and in S3 alike."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError

from forebay.errors import Halt, InvalidConfiguration, Unreachable
from forebay.lake.objects import Objects, open_objects
from forebay.lake.s3_objects import S3Objects
from tests.source.fake_sqs import refusal


class FakeS3:
    """`trouble` holds errors that the next puts raise, after having written or not."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.trouble: list[tuple[Exception, bool]] = []

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, IfNoneMatch: str = "") -> None:  # noqa: N803
        if self.trouble:
            error, written = self.trouble.pop(0)
            if written:
                self.objects[Key] = Body
            raise error
        if IfNoneMatch and Key in self.objects:
            raise refusal("PreconditionFailed", 412)
        self.objects[Key] = Body

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        if Key not in self.objects:
            raise refusal("NoSuchKey", 404)
        return {"Body": io.BytesIO(self.objects[Key])}

    def delete_objects(self, *, Bucket: str, Delete: dict[str, Any]) -> dict[str, Any]:  # noqa: N803
        for named in Delete["Objects"]:
            self.objects.pop(named["Key"], None)
        return {}

    def get_paginator(self, _: str) -> FakeS3:
        return self

    def paginate(self, *, Bucket: str, Prefix: str, Delimiter: str) -> list[dict[str, Any]]:  # noqa: N803
        found = [k for k in sorted(self.objects) if k.startswith(Prefix) and "/" not in k[len(Prefix) :]]
        return [{"Contents": [{"Key": key}]} for key in found] or [{}]


MAKERS: list[Callable[[Path], Objects]] = [
    lambda folder: open_objects(str(folder / "deep" / "store")),
    lambda folder: open_objects(f"file://{folder}/with%20space"),
    lambda folder: S3Objects(FakeS3(), "s3://bucket/some/prefix"),
    lambda folder: S3Objects(FakeS3(), "s3://bucket"),
]


@pytest.fixture(params=MAKERS, ids=["folder", "file-url", "s3", "s3-root"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    made: Objects = request.param(tmp_path)
    return made


def test_a_name_is_written_once(store: Objects) -> None:
    assert [store.write_once("x/a", b"1"), store.write_once("x/a", b"1"), store.write_once("x/a", b"2")] == [
        True,
        True,
        False,
    ]
    assert store.read("x/a") == b"1"


def test_a_name_written_anew_holds_the_new(store: Objects) -> None:
    store.write("a", b"1")
    store.write("a", b"2")
    assert (store.read("a"), store.read("b")) == (b"2", None)


def test_names_are_those_of_one_folder(store: Objects) -> None:
    for name in ("x/b", "x/a", "x/deep/c", "y/d"):
        store.write(name, b"")
    store.delete(["x/b", "never/was"])
    assert (store.names("x"), store.names("nothing")) == (["a"], [])


def test_of_many_writers_of_one_name_one_wins(tmp_path: Path) -> None:
    store = open_objects(str(tmp_path))
    with ThreadPoolExecutor(16) as pool:
        won = list(pool.map(lambda i: store.write_once("x", b"%d" % i), range(64)))
    assert sum(won) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["x"], "nothing is left lying about"


def test_a_write_whose_answer_was_lost_is_known_as_our_own() -> None:
    s3 = FakeS3()
    s3.trouble = [(refusal("PreconditionFailed", 412), True)]
    assert S3Objects(s3, "s3://b/p").write_once("x", b"mine")


def test_a_write_that_meets_another_one_is_tried_again_a_few_times() -> None:
    s3 = FakeS3()
    s3.trouble = [(refusal("ConditionalRequestConflict", 409), False)] * 2
    assert S3Objects(s3, "s3://b/p").write_once("x", b"mine")
    s3.trouble = [(refusal("ConditionalRequestConflict", 409), False)] * 9
    with pytest.raises(Halt, match="another writer"):
        S3Objects(s3, "s3://b/p").write_once("y", b"mine")


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (
            refusal("AccessDenied", 403),
            InvalidConfiguration,
            r"s3://b/p: cannot write x: .*AccessDenied.*s3:PutObject",
        ),
        (refusal("NoSuchBucket", 404), InvalidConfiguration, r"s3://b/p: there is no bucket b \(create it, or check"),
        (NoCredentialsError(), Unreachable, r"s3://b/p: no AWS credentials were found \(set AWS_PROFILE"),
        (refusal("InternalError", 500), Halt, "cannot write s3://b/p/x"),
        (EndpointConnectionError(endpoint_url="http://s3"), Halt, "cannot write s3://b/p/x"),
    ],
)
def test_a_store_out_of_reach_is_said_with_its_path(error: Exception, kind: type[Exception], words: str) -> None:
    for write in ("write", "write_once"):
        s3 = FakeS3()
        s3.trouble = [(error, False)]
        with pytest.raises(kind, match=words):
            getattr(S3Objects(s3, "s3://b/p"), write)("x", b"")


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InvalidConfiguration, match="file: cannot be written"):
        open_objects(str(tmp_path / "file")).write_once("x", b"")


def test_a_full_disk_is_named_and_nothing_half_written_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidConfiguration, match=r"cannot be written: .*No space left on device"):
        open_objects(str(tmp_path)).write("a.json", b"{}")
    assert list(tmp_path.iterdir()) == []
