"""A generation belongs to one stream: batches of a stream that began anew are never taken for those of the old one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forebay.errors import Halt
from forebay.jobs.generation import generation_of, known_generation
from forebay.lake.objects import Objects, open_objects


@pytest.fixture
def checkpoint(tmp_path: Path) -> Objects:
    return open_objects(str(tmp_path))


def stream(checkpoint: Objects, name: str) -> None:
    """As Spark writes it."""
    checkpoint.write("stream/metadata", json.dumps({"id": name}).encode())


def test_a_stream_keeps_its_generation(checkpoint: Objects) -> None:
    stream(checkpoint, "one")
    assert generation_of(checkpoint) == generation_of(checkpoint) == known_generation(checkpoint)


def test_a_stream_that_was_deleted_and_began_anew_has_another_one(checkpoint: Objects) -> None:
    stream(checkpoint, "one")
    first = generation_of(checkpoint)
    checkpoint.delete(["stream/metadata"])
    assert known_generation(checkpoint) is None
    stream(checkpoint, "two")
    assert generation_of(checkpoint) != first


def test_a_checkpoint_of_older_code_keeps_its_generation_and_is_bound_to_its_stream(checkpoint: Objects) -> None:
    checkpoint.write("generation", b"0123456789ab")
    stream(checkpoint, "one")
    assert generation_of(checkpoint) == "0123456789ab"
    stream(checkpoint, "two")
    assert generation_of(checkpoint) != "0123456789ab"


def test_a_running_stream_without_its_id_halts(checkpoint: Objects) -> None:
    with pytest.raises(Halt, match="disappeared"):
        generation_of(checkpoint)
