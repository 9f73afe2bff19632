"""Objects in a folder and in S3: the same answers from both."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.lake.objects import Objects, open_objects
from forebay_local.twin.twin import Twin


@pytest.fixture(params=["folder", "s3"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    if request.param == "folder":
        return open_objects(f"file://{tmp_path}/with%20space")
    twin: Twin = request.getfixturevalue("twin")
    return open_objects(f"s3://{twin.lake_bucket}/{tmp_path.name}/deep/")


def test_what_is_written_is_found_read_and_deleted(objects: Objects) -> None:
    for name in ("b/2", "a/1", "b/10", "top"):
        objects.write(name, name.encode())
    assert [(f.name, f.bytes) for f in objects.found()] == [("a/1", 3), ("b/10", 4), ("b/2", 3), ("top", 3)]
    assert [f.name for f in objects.found("b/", after="b/10")] == ["b/2"]
    assert [f.name for f in objects.found("b/1")] == ["b/10"]
    assert objects.folders() == ["a", "b"]
    assert (objects.read("a/1"), objects.read("a/2"), objects.read("top/x")) == (b"a/1", None, None)
    objects.delete(["a/1", "never there"])
    assert objects.read("a/1") is None


def test_of_two_who_write_over_the_same_content_one_wins(objects: Objects) -> None:
    assert objects.write_over("x", b"1", None)
    assert not objects.write_over("x", b"2", None)
    found = objects.read_tagged("x")
    assert found is not None
    assert objects.write_over("x", b"3", found[1])
    assert not objects.write_over("x", b"4", found[1])
    assert objects.read("x") == b"3"
