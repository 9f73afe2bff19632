"""Which messages make a batch, and in which order it has their files."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from forebay.landed_file import LandedFile
from forebay.source.admission import Admission, Notice, in_order
from forebay.source.manifest import AnnouncedFile, Manifest, RecentFiles
from forebay.source.queue import Message, Receipt

AT = datetime(2026, 11, 21, 10, tzinfo=UTC)


def file(key: str, size: int | None = 10, sequencer: str | None = "01", event_time: datetime | None = AT) -> LandedFile:
    return LandedFile("landing", key, size, f"etag{sequencer}", sequencer=sequencer, event_time=event_time)


def notice(name: str, *files: LandedFile) -> Notice:
    return Notice(Message(Receipt(name, f"handle {name}"), "", AT, 1), files)


def admission(max_files: int = 3, max_bytes: int = 100, taken: RecentFiles | None = None) -> Admission:
    return Admission(taken or RecentFiles(), max_files=max_files, max_bytes=max_bytes)


def test_there_is_room_until_the_files_or_their_bytes_are_enough_or_a_message_waits() -> None:
    batch = admission()
    rooms = [batch.room]
    for name, size in (("a", 10), ("b", 89)):
        assert batch.offer(notice(name, file(name, size))) == "taken"
        rooms.append(batch.room)
    assert (rooms, batch.offer(notice("c", file("c", 2))), batch.room) == ([3, 2, 1], "held", 0)
    assert batch.offer(notice("d", file("d", 1))) == "taken", "what comes later may still fit"
    assert (batch.held, [one.message_id for one in batch.receipts]) == ([notice("c", file("c", 2))], ["a", "b", "d"])
    full = admission()
    full.offer(notice("a", file("a", 100)))
    assert (full.room, full.held) == (0, [])


def test_a_message_without_a_place_left_for_its_files_is_held() -> None:
    batch = admission(max_files=2)
    assert batch.offer(notice("1", file("a"))) == "taken"
    assert batch.offer(notice("2", file("b"), file("c"))) == "held"
    assert batch.offer(notice("3", file("d"))) == "taken"
    assert (batch.room, batch.offer(notice("4", file("e")))) == (0, "held")


@pytest.mark.parametrize("most", [{"max_files": 1}, {"max_bytes": 5}])
def test_a_message_that_is_larger_than_a_batch_is_one_alone(most: dict[str, int]) -> None:
    batch = admission(**most)
    assert batch.offer(notice("1", file("a"), file("b"))) == "taken"
    assert (len(batch.rows), batch.room) == (2, 0)
    assert batch.offer(notice("2", file("a"))) == "taken", "its file is here"


def test_files_of_unknown_size_take_no_bytes() -> None:
    batch = admission(max_bytes=10)
    assert [batch.offer(notice(key, file(key, size))) for key, size in (("a", None), ("b", 10), ("c", None))] == [
        "taken"
    ] * 3


def test_of_records_for_one_object_in_a_message_the_first_one_counts_as_it_does_among_messages() -> None:
    first = file("a")
    batch = admission()
    batch.offer(notice("1", first, replace(first, event_time=AT + timedelta(minutes=1))))
    batch.offer(notice("2", replace(first, event_time=AT + timedelta(minutes=2))))
    assert [one.file.event_time for one in batch.rows] == [AT]


def test_a_file_that_comes_twice_is_one_row_and_both_messages_go_with_it() -> None:
    batch = admission(max_files=1)
    assert batch.offer(notice("1", file("a"), file("a"))) == "taken"
    assert batch.offer(notice("2", file("a"))) == "taken", "it needs no place"
    assert ([row.file.key for row in batch.rows], [one.message_id for one in batch.receipts]) == (["a"], ["1", "2"])
    assert (batch.duplicates, batch.held) == (2, [])


def test_a_message_whose_files_are_all_in_earlier_batches_is_a_repeat() -> None:
    taken = RecentFiles()
    taken.remember(Manifest(0, -1, (AnnouncedFile(file("a"), AT, 1, "0"),), ()))
    batch = admission(taken=taken)
    assert (batch.offer(notice("1", file("a"))), batch.receipts, batch.duplicates) == ("repeat", [], 1)
    assert batch.offer(notice("2", file("a"), file("b"))) == "taken"
    assert batch.offer(notice("3", file("a"), file("b"))) == "taken", "it is deleted with this batch"
    assert ([row.file.key for row in batch.rows], batch.duplicates) == (["b"], 4)


def announced(one: LandedFile, sent_at: datetime = AT) -> AnnouncedFile:
    return AnnouncedFile(one, sent_at, 1, "1")


def test_the_oldest_come_first_by_the_time_of_s3_or_else_of_the_message() -> None:
    late, early = AT + timedelta(hours=2), AT + timedelta(hours=1)
    rows = [
        announced(file("a", event_time=late), AT),
        announced(file("b", event_time=None), early),
        announced(file("c"), late),
    ]
    assert [row.file.key for row in in_order(rows, "oldest-first")] == ["c", "b", "a"]
    assert in_order(rows, "arrival") == rows


def test_versions_of_a_key_are_in_the_order_in_which_s3_wrote_them_on_the_places_that_they_have() -> None:
    first, second, third = (announced(file("a", sequencer=f"0{n}")) for n in (1, 2, 3))
    other, unknown = announced(file("b")), announced(file("a", sequencer=None))
    assert in_order([third, other, first, second], "arrival") == [first, other, second, third]
    assert in_order([second, first], "arrival") == [first, second]
    assert in_order([first, unknown, second], "arrival") == [first, unknown, second]
    elsewhere = announced(replace(first.file, bucket="other"))
    assert in_order([second, elsewhere], "arrival") == [second, elsewhere]
