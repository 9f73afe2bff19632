"""What a stream's first batch leaves when its driver dies is removed before the next start; nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.jobs.first_batch import begun_batch, remove_unfinished_entries
from forebay.lake.objects import open_objects

ENTRY = "0.4b6cdd34-8d3e-4a44-b0a8-d9b0a4f8b1b5.tmp"


def after_removal(folder: Path, *names: str) -> list[str]:
    checkpoint = open_objects(str(folder))
    for name in names:
        checkpoint.write(name, b"x")
    remove_unfinished_entries(checkpoint)
    remove_unfinished_entries(checkpoint)
    return [found.name for found in checkpoint.found()]


@pytest.mark.parametrize(
    "left",
    [
        (f"stream/offsets/.{ENTRY}",),
        (f"stream/offsets/.{ENTRY}", f"stream/offsets/..{ENTRY}.crc"),
        ("stream/offsets/.0.crc",),
        (f"stream/commits/.{ENTRY}",),
        (f"stream/state/0/0/.{ENTRY}",),
    ],
)
def test_entries_that_were_never_renamed_leave_a_stream_without_a_batch(tmp_path: Path, left: tuple[str, ...]) -> None:
    assert after_removal(tmp_path, "stream/metadata", *left) == ["stream/metadata"]


@pytest.mark.parametrize("entry", ["stream/offsets/0", "stream/commits/12"])
def test_a_stream_that_has_a_batch_is_left_alone(tmp_path: Path, entry: str) -> None:
    there = sorted([entry, f"stream/offsets/.{ENTRY}", "stream/metadata"])
    assert after_removal(tmp_path, *there) == there


def test_what_spark_did_not_write_aside_stays_so_that_spark_refuses_it(tmp_path: Path) -> None:
    there = sorted(["stream/offsets/notes.txt", "stream/state/0/0/1.delta", f"manifests/.{ENTRY}"])
    assert after_removal(tmp_path, *there) == there


def test_nothing_is_there_yet(tmp_path: Path) -> None:
    assert after_removal(tmp_path) == []


@pytest.mark.parametrize(
    ("there", "begun"),
    [
        ((), None),
        (("stream/metadata", f"stream/offsets/.{ENTRY}"), None),
        (("stream/offsets/0",), 0),
        (("stream/offsets/0", "stream/commits/0"), None),
        (("stream/offsets/9", "stream/offsets/10", "stream/commits/9"), 10),
    ],
)
def test_a_batch_has_begun_if_spark_has_its_offset_and_not_its_commit(
    tmp_path: Path, there: tuple[str, ...], begun: int | None
) -> None:
    checkpoint = open_objects(str(tmp_path))
    for name in there:
        checkpoint.write(name, b"x")
    assert begun_batch(checkpoint) == begun
