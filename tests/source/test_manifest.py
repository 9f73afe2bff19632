"""Manifests: what is written is read back, once and for all; and what recent batches took is remembered, bounded."""

from __future__ import annotations

import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.errors import Halt
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.source.manifest import AnnouncedFile, Manifest, Manifests, RecentFiles
from forebay.source.queue import Receipt

moments = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
files = st.builds(
    LandedFile,
    texts,
    texts,
    st.none() | st.integers(0, 1 << 50),
    texts,
    st.none() | texts,
    st.none() | texts,
    st.none() | moments,
)
rows = st.builds(AnnouncedFile, files, moments, st.integers(1, 1000), texts, st.booleans())
manifests = st.builds(
    Manifest,
    st.integers(1, 1 << 40),
    st.integers(0, 1 << 40),
    st.lists(rows, max_size=5).map(tuple),
    st.lists(st.builds(Receipt, texts, texts), max_size=5).map(tuple),
)


def row(key: str, *, again: bool = False, message_id: str = "m") -> AnnouncedFile:
    return AnnouncedFile(LandedFile("b", key, 1, "e"), datetime(2026, 1, 2, tzinfo=UTC), 1, message_id, again)


def manifest(number: int, *keys: str) -> Manifest:
    return Manifest(number, number - 1, tuple(map(row, keys)), (Receipt("m", "r"),))


@given(manifests)
def test_a_manifest_read_back_is_the_one_written(written: Manifest) -> None:
    assert Manifest.decode(written.encode()) == written


@given(manifests)
def test_the_same_manifest_always_has_the_same_bytes(written: Manifest) -> None:
    assert written.encode() == Manifest.decode(written.encode()).encode()


def test_a_manifest_is_json_lines_that_a_person_can_read() -> None:
    lines = [json.loads(line) for line in gzip.decompress(manifest(7, "in/a.json").encode()).splitlines()]
    assert lines[0] == {"manifest": 7, "committed": 6, "files": 1, "version": 1}
    assert lines[1]["key"] == "in/a.json"
    assert lines[2] == {"id": "m", "receipt": "r"}


def test_a_manifest_written_twice_is_one_and_a_different_one_is_refused(tmp_path: Path) -> None:
    store = Manifests(open_objects(str(tmp_path)))
    store.write(manifest(1, "a"))
    store.write(manifest(1, "a"))
    with pytest.raises(Halt, match="another run"):
        store.write(manifest(1, "b"))
    assert (store.numbers(), store.read(1)) == ([1], manifest(1, "a"))


def test_what_a_batch_took_is_known_until_it_is_forgotten() -> None:
    taken = RecentFiles()
    taken.remember(manifest(1, "a", "b"))
    taken.remember(manifest(2, "c"))
    taken.forget(1)
    assert [row(key).mark in taken for key in "abc"] == [False, False, True]


def test_a_file_taken_again_on_purpose_is_told_by_its_message() -> None:
    taken = RecentFiles()
    taken.remember(Manifest(1, 0, (row("a", again=True, message_id="m1"),), ()))
    assert row("a", again=True, message_id="m1").mark in taken
    assert row("a", again=True, message_id="m2").mark not in taken
    assert row("a").mark not in taken


def test_memory_of_batches_is_bounded_and_keeps_the_newest() -> None:
    taken = RecentFiles(most=10)
    for number in range(1, 10):
        taken.remember(manifest(number, *(f"{number}-{i}" for i in range(4))))
    assert taken.batches == [8, 9]
    assert len(taken) == 8


def test_the_same_bytes_put_again_are_another_announcement_and_a_redelivery_is_not() -> None:
    taken = RecentFiles()
    first = replace(row("a"), file=replace(row("a").file, sequencer="01"))
    taken.remember(Manifest(1, 0, (first,), ()))
    assert replace(first, message_id="sent once more").mark in taken
    assert replace(first, file=replace(first.file, sequencer="02")).mark not in taken


def test_two_batches_are_remembered_however_large_and_no_more_is_forgotten_than_must_be() -> None:
    large, bounded = RecentFiles(most=1), RecentFiles(most=8)
    for number in (1, 2):
        large.remember(manifest(number, *(f"{number}-{i}" for i in range(4))))
    assert large.batches == [1, 2]
    for number, files in enumerate((4, 2, 2, 4), start=1):
        bounded.remember(manifest(number, *(f"{number}-{i}" for i in range(files))))
    assert (bounded.batches, len(bounded)) == ([2, 3, 4], 8)


def test_a_file_that_a_later_batch_took_too_is_known_when_the_earlier_one_is_forgotten() -> None:
    taken = RecentFiles()
    taken.remember(manifest(1, "a", "b"))
    taken.remember(manifest(2, "a"))
    taken.forget(1)
    assert [row(key).mark in taken for key in "ab"] == [True, False]


def test_what_else_lies_beside_manifests_is_none_and_one_that_goes_meanwhile_does_not_matter(tmp_path: Path) -> None:
    store = Manifests(open_objects(str(tmp_path)))
    for number in (1, 2):
        store.write(manifest(number, "a"))
    for name in ("notes.jsonl.gz", "000000000003.part"):
        (tmp_path / "batches" / name).write_bytes(b"")
    assert store.numbers() == [1, 2]
    store.clean([1])
    with ThreadPoolExecutor(1) as pool:
        assert [one.number for one in store.read_all([1, 2], pool)] == [2]
