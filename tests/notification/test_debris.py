"""Names that mark an object as left behind by a framework, and names that only look so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forebay.notification import REASONS
from forebay.notification.debris import debris
from forebay_local.fabricate import file_named

DEBRIS = [
    ("in/_SUCCESS", 0, "success-marker"),
    ("_SUCCESS", 1200, "success-marker"),  # S3A's committers write a report into it
    ("in/_committed_8123", 300, "commit-marker"),
    ("in/_started_8123", 0, "commit-marker"),
    ("in/_temporary/0/task_1/part-0.json", 10, "temporary"),
    ("_temporary/part-0.json", 10, "temporary"),
    ("in/__magic_job-1/part-0.json", 10, "temporary"),
    ("in/part-0.json._COPYING_", 10, "temporary"),
    ("in/.part-0.json.crc", 10, "hidden"),
    (".DS_Store", 10, "hidden"),
    ("in/.spark-staging-1/part-0.json", 10, "hidden"),
    ("in/_delta_log/00000000000000000000.json", 10, "hidden"),
    ("in/_spark_metadata/0", 10, "hidden"),
    ("in/", 0, "folder-marker"),
    ("/", 0, "folder-marker"),
    ("in_$folder$", 0, "folder-marker"),
]
FILES = [
    ("in/part-0.json", 10),
    ("in/part-0.json", 0),  # empty, but a file; the batch says so
    ("_games/part-0.json", 10),
    ("in/_events.json", 10),
    ("in/_SUCCESSFUL.json", 10),
    ("in/_SUCCESS/part-0.json", 10),
    ("in/my_temporary/part-0.json", 10),
    ("in/_temporary", 10),
    ("in/_delta_log", 10),
    ("in/part.0.json", 10),
    ("in/", 10),  # a console upload may have contents
    ("in/", None),
    ("in_$folder$", 10),
    ("a//b.json", 10),
]


@pytest.mark.parametrize(("key", "size", "reason"), DEBRIS)
def test_debris_is_told_by_its_name(key: str, size: int, reason: str) -> None:
    found = debris(replace(file_named(key), size=size))
    assert found is not None
    assert (found.reason, found.what) == (reason, f"s3://landing/{key}")
    assert reason in REASONS


@pytest.mark.parametrize(("key", "size"), FILES)
def test_a_name_that_only_looks_like_debris_is_a_file(key: str, size: int | None) -> None:
    assert debris(replace(file_named(key), size=size)) is None
