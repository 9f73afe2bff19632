"""Addresses: one answer to whether a place is in S3, and to what it names there."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.address import bucket_and_key, is_s3, lake_address, local_folder, overlap, typed_address
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
    if not odd:
        assert lake_address(address) == address.rstrip("/")
        return
    with pytest.raises(InvalidConfiguration) as refused:
        lake_address(address)
    assert f"lake {address}: has {odd!r} in its name, which not all engines read alike" in str(refused.value)


def test_a_lake_is_an_address_in_s3_or_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here" / "there").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    folders = {"./lake/": "here/lake", "../lake": "lake", ".": "here", "~/lake": "lake", "~": "", "there": "here/there"}
    for text, folder in folders.items():
        assert lake_address(text) == str(tmp_path / folder), text
    for text in ("s3://lake", "s3a://lake/games", "/tmp/lake", "file:/tmp/lake", "file:///tmp/lake"):
        assert lake_address(f"{text}/") == text


@pytest.mark.parametrize("text", ["studio-lake", ".lake", "studio-lake/games", "s3", "~nobody-here/lake"])
def test_a_bare_name_is_no_lake_for_it_may_be_a_bucket(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command would make a folder of this name, and say that all is well."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidConfiguration) as refused:
        lake_address(text)
    assert str(refused.value) == (
        f"lake {text}: is not a folder here (write s3://{text} for a bucket, or ./{text} for a new folder)"
    )


def test_a_file_is_no_lake_and_no_place_for_declarations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands began to read below it, and ended with a traceback."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "notes.txt"
    file.touch()
    for text in (str(file), f"{file}/lake", f"file:{file}", "./notes.txt", "notes.txt"):
        with pytest.raises(InvalidConfiguration, match=r"notes.txt is a file \(name a folder, or s3://bucket/prefix\)"):
            lake_address(text)
        with pytest.raises(InvalidConfiguration, match=r"notes.txt is a file"):
            typed_address(text, "place")


def test_the_place_of_declarations_has_the_same_rule() -> None:
    with pytest.raises(
        InvalidConfiguration, match=r"place lake/declarations: is not a folder here \(write s3://lake/decl"
    ):
        typed_address("lake/declarations", "place")
    with pytest.raises(InvalidConfiguration, match="place gs://lake: is neither in S3 nor a folder"):
        typed_address("gs://lake", "place")


@pytest.mark.parametrize("text", ["s3n://lake", "https://lake.s3.amazonaws.com", "s3:/lake", "s3://", "file:", "/"])
def test_what_is_neither_in_s3_nor_a_folder_is_no_lake(text: str) -> None:
    with pytest.raises(InvalidConfiguration) as refused:
        lake_address(text)
    assert str(refused.value) == f"lake {text}: is not the address of a lake (write s3://bucket/prefix, or a folder)"
