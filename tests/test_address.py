"""Addresses: one answer to whether a place is in S3, and to what it names there."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.address import bucket_and_key, is_s3, local_folder, overlap, why_no_lake
from forebay.errors import InvalidConfiguration


@pytest.mark.parametrize(
    ("address", "in_s3"),
    [
        ("s3://lake", True),
        ("s3a://lake/deep", True),
        ("s3n://lake", False),
        ("s3-folder/lake", False),
        ("s3", False),
        ("/tmp/s3://lake", False),
        ("file:///s3://lake", False),
    ],
)
def test_an_address_is_in_s3_or_not(address: str, in_s3: bool) -> None:
    assert is_s3(address) == in_s3


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("s3://lake", ("lake", "")),
        ("s3a://lake/", ("lake", "")),
        ("s3://lake/a/b/", ("lake", "a/b")),
        ("s3://lake/a#b?c", ("lake", "a#b?c")),
    ],
)
def test_a_bucket_and_a_key_are_read_as_they_are(address: str, parts: tuple[str, str]) -> None:
    assert bucket_and_key(address) == parts


@pytest.mark.parametrize("address", ["file:/a/b%20c", "file:///a/b%20c", "/a/b%20c"])
def test_a_folder_is_read_as_hadoop_reads_it(address: str) -> None:
    assert local_folder(address) == Path("/a/b%20c")


@pytest.mark.parametrize(
    "address", ["s3:/lake", "S3://lake", "S3A:/lake", "s3n://lake", "gs://lake", "abfss://lake@account", "https://lake"]
)
def test_an_address_of_another_scheme_is_no_folder(address: str) -> None:
    """A job would fill a folder `s3:` of its machine, and delete the messages."""
    with pytest.raises(InvalidConfiguration) as refused:
        local_folder(address)
    assert str(refused.value) == f"{address}: is neither in S3 nor a folder (write s3://bucket/prefix)"


@pytest.mark.parametrize("address", ["s3://", "s3:///in/"])
def test_an_address_without_a_bucket_is_named(address: str) -> None:
    with pytest.raises(InvalidConfiguration, match="names no bucket"):
        bucket_and_key(address)


@pytest.mark.parametrize(
    ("one", "other", "do"),
    [
        ("s3://b/lake", "s3a://b/lake/", True),
        ("s3://b/lake/x", "s3://b/lake", True),
        ("s3://b", "s3://b/lake", True),
        ("s3://b/lakes", "s3://b/lake", False),
        ("s3://c/lake", "s3://b/lake", False),
        ("/tmp/lake/../lake", "file:///tmp/lake", True),
        ("/tmp/lake", "s3://tmp/lake", False),
    ],
)
def test_places_overlap_where_one_lies_in_the_other(one: str, other: str, do: bool) -> None:
    assert overlap(one, other) == overlap(other, one) == do


@pytest.mark.parametrize(
    ("address", "odd"),
    [
        *((f"/tmp/{name}", name) for name in ("%25", "%2F", "%e9", "\\", "[", "]", "^", "|", "\t", "\n", "\x7f")),
        *((f"s3://b/a{name}b/c", name) for name in ("%20", "#", "?", "//", "\\", "\n")),
        ("s3://b/../c", ".."),
        ("s3://b/a/.", "."),
        *((f"/tmp/{name}", "") for name in ("a b", "é", "100%", "%zz", "a#b", "a?b", "..a", "a'b", "a&b=c")),
        *((f"s3://b/{name}", "") for name in ("", "a b/", "é", "100%", "..a", "a.", "a/.b/c", "a+b")),
        ("file:///tmp/a b#c", ""),
    ],
)
def test_a_folder_that_engines_read_differently_can_be_no_lake(address: str, odd: str) -> None:
    said = f"has {odd!r} in its name, which not all engines read alike" if odd else ""
    assert why_no_lake(address) == said
