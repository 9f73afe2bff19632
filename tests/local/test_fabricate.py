"""The fabricator: its messages look like AWS's, and the answer it gives for a feed is the one a right reader finds."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from forebay.notification import newer, read_message
from forebay_local.fabricate import (
    GARBAGE,
    Chaos,
    Wrapping,
    body,
    file_named,
    setup_event,
    versions,
)
from tests.fabricated import AWKWARD_KEYS, awkward_files, full_bodies

FILES = [*awkward_files(), *versions("in/versions.json", 4), *(file_named(f"in/{n}.json") for n in range(150))]


def recorded(name: str) -> Any:
    return json.loads((Path(__file__).parents[1] / "events" / f"{name}.json").read_text())


def names_in(document: Any) -> set[str]:
    """Every path of field names in a document; embedded JSON texts are looked into."""
    if isinstance(document, str) and document.startswith("{"):
        document = json.loads(document)
    if isinstance(document, list):
        return {name for member in document for name in names_in(member)}
    if isinstance(document, dict):
        return {f"{name}.{below}" for name, value in document.items() for below in names_in(value) | {""}}
    return set()


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        (Wrapping.S3, "s3_put"),
        (Wrapping.SNS, "sns_s3_put"),
        (Wrapping.EVENTBRIDGE, "eventbridge_object_created"),
    ],
)
def test_a_made_message_has_the_fields_of_a_recorded_one(shape: Wrapping, name: str) -> None:
    assert names_in(json.loads(body([file_named("in/a.json")], shape))) == names_in(recorded(name))


def test_a_made_test_event_has_the_fields_of_a_recorded_one() -> None:
    assert names_in(json.loads(setup_event("landing"))) == names_in(recorded("s3_test_event"))


@pytest.mark.parametrize("shape", Wrapping)
@pytest.mark.parametrize("file", awkward_files(folder="in/"), ids=lambda file: file.key[:40])
def test_an_awkward_key_comes_back_out_of_every_shape(file: Any, shape: Wrapping) -> None:
    assert read_message(body([file], shape)).files == (file,)


def test_awkward_keys_are_ones_that_s3_takes() -> None:
    assert len(set(AWKWARD_KEYS)) == len(AWKWARD_KEYS)
    lengths = [len(file.key.encode()) for file in awkward_files(folder="in/")]
    assert max(lengths) == lengths[-1] == 1024


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda text: text[:30])
def test_garbage_is_kept_and_says_nothing(garbage: str) -> None:
    reading = read_message(garbage)
    assert (reading.files, reading.ignored) == ((), ())
    assert reading.refused


def test_versions_of_a_key_are_told_apart_and_not_all_comparable() -> None:
    files = versions("a.json", 4)
    assert len({file.identity for file in files}) == 4
    assert [newer(b, a) for a, b in pairwise(files)] == [None, None, None]
    assert [newer(files[2], files[0]), newer(files[3], files[1])] == [True, True]


@pytest.mark.parametrize("shape", Wrapping)
def test_full_messages_stay_within_the_limit_and_leave_nothing_out(shape: Wrapping) -> None:
    bodies = full_bodies(FILES, shape, limit_bytes=64 * 1024)
    sizes = [len(text.encode()) for text in bodies]
    assert max(sizes) <= 64 * 1024
    assert all(size > 60 * 1024 for size in sizes[:-1])
    assert [file.identity for text in bodies for file in read_message(text).files] == [file.identity for file in FILES]


def test_without_chaos_every_file_is_announced_once_and_in_order() -> None:
    feed = Chaos().announce(FILES)
    assert [read_message(message.body).files for message in feed.messages] == [(file,) for file in FILES]
    assert feed.expected == tuple(FILES)
    assert (feed.dropped, feed.vanished, feed.kept, feed.ignored, feed.mentions) == ((), (), (), {}, len(FILES))


def test_the_same_seed_gives_the_same_feed_and_another_another() -> None:
    assert Chaos.of_every_kind(7).announce(FILES) == Chaos.of_every_kind(7).announce(FILES)
    assert Chaos.of_every_kind(7).announce(FILES) != Chaos.of_every_kind(8).announce(FILES)


@pytest.mark.parametrize("seed", range(20))
def test_the_answer_of_a_feed_is_what_a_right_reader_finds(seed: int) -> None:
    feed = Chaos.of_every_kind(seed).announce(FILES)
    readings = {message.body: read_message(message.body) for message in feed.messages}
    read = [readings[message.body] for message in feed.messages]
    found = [file.identity for reading in read for file in reading.files]
    assert set(found) == {file.identity for file in (*feed.expected, *feed.vanished)}
    assert len(found) == feed.mentions
    assert {f.identity for f in FILES} == {f.identity for f in (*feed.expected, *feed.dropped)}
    assert not set(found) & {file.identity for file in feed.dropped}
    assert Counter(thing.reason for reading in read for thing in reading.ignored) == feed.ignored
    assert sorted(m.body for m in feed.messages if readings[m.body].refused) == sorted(feed.kept)


def test_chaos_of_every_kind_does_all_that_it_can() -> None:
    feed = Chaos.of_every_kind(1).announce(FILES)
    assert feed.dropped
    assert feed.vanished
    assert feed.mentions > len(feed.expected) + len(feed.vanished)
    assert len(feed.ignored) > 5
    assert any(text in GARBAGE for text in feed.kept)
    assert any(read_message(text).files for text in feed.kept)  # spoiled: good and bad in one
    assert len({message.delay_s for message in feed.messages}) > 3
    assert any(len(read_message(message.body).files) > 1 for message in feed.messages)


CHANCES = {
    "drop": lambda feed: len(feed.dropped) == len(FILES) and feed.messages == (),
    "duplicate": lambda feed: feed.mentions == 5 * len(FILES),
    "vanish": lambda feed: len(feed.vanished) == len(FILES),
    "reorder": lambda feed: [m.body for m in feed.messages] != [body([file]) for file in FILES],
    "delay": lambda feed: all(message.delay_s for message in feed.messages),
    "spoil": lambda feed: len(feed.kept) == len(FILES),
    "noise": lambda feed: sum(feed.ignored.values()) == len(FILES),
    "garbage": lambda feed: len(feed.kept) == len(FILES),
}


def test_every_chance_of_chaos_is_in_the_table() -> None:
    assert set(CHANCES) == {field.name for field in fields(Chaos) if field.default == 0.0 and field.type == "float"}


@pytest.mark.parametrize("chance", CHANCES)
def test_a_certain_chance_always_comes_true(chance: str) -> None:
    feed = Chaos(**{chance: 1.0}).announce(FILES)  # type: ignore[arg-type]
    assert CHANCES[chance](feed)


def test_messages_are_planned_in_the_order_of_their_delays() -> None:
    delays = [message.delay_s for message in Chaos(delay=0.5, longest_delay_s=9).announce(FILES).messages]
    assert delays == sorted(delays)
    assert max(delays) == 9
