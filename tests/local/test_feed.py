"""The feed is the same every time, and its account is what an independent reader of its files counts."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forebay.errors import TryAgain
from forebay_local.fabricate import Chaos, Message
from forebay_local.feed import DroppedFile, Mix, Recipe, Tally, drop, game_names, plan, send_messages

START = datetime(2026, 11, 21, 13, 0, tzinfo=UTC)
ROUGH = Mix(
    unreadable=0.05, mistyped=0.05, gameless=0.05, unknown=0.05, late=0.1, empty_lines=0.05, files_put_twice=0.2
)
SMALL = Recipe(START, files=60, games=5, mean_records=40, mix=ROUGH)


# --- the plan ---


def test_the_same_recipe_gives_the_same_files() -> None:
    assert list(plan(SMALL)) == list(plan(SMALL))


@pytest.mark.parametrize("other", [replace(SMALL, seed=2), replace(SMALL, start=START + timedelta(seconds=1))])
def test_another_seed_or_start_writes_over_no_file_of_the_first(other: Recipe) -> None:
    assert not {file.key for file in plan(SMALL)} & {file.key for file in plan(other)}


def test_the_account_is_what_a_reader_counts() -> None:
    for file in plan(SMALL):
        assert counted(file) == file.tally, file.key


def test_every_kind_of_record_and_file_is_in_a_feed() -> None:
    files = list(plan(SMALL))
    tally = sum_of(files)
    assert min(tally.unknown, tally.gameless, tally.unreadable, tally.late, sum(tally.mistyped.values())) > 0
    texts = [text(file) for file in files]
    assert any(b"\n\n" in content for content in texts)
    assert {content.endswith(b"\n") for content in texts} == {True, False}
    assert {file.key.rpartition(".")[2] for file in files} == {"gz", "json"}
    assert any(" " in file.key and "+" in file.key for file in files)
    assert any(not file.key.isascii() for file in files)
    assert any(len(file.tally.clean) > 1 for file in files)
    events = Counter(record["event"] for file in files for record in objects(file) if "event" in record)
    assert set(events) == {"session_start", "session_end", "level_up", "purchase", "ad_view", "crash"}


def test_an_unmixed_feed_is_clean() -> None:
    clean = Mix(0, 0, 0, 0, 0, 0, gz_files=0, mixed_files=0, files_without_last_newline=0, files_put_twice=0)
    files = list(plan(replace(SMALL, mix=clean)))
    tally = sum_of(files)
    assert len(files) == 60
    assert tally == Tally(clean=tally.clean)
    assert tally.records == sum(file.body.count(b"\n") for file in files)
    assert tally.records == pytest.approx(60 * 40, rel=0.03)


def test_each_game_has_a_file_and_the_first_has_most() -> None:
    by_game = sum_of(plan(Recipe(START, files=100, games=8, mean_records=30))).clean
    assert set(by_game) == set(game_names(8))
    assert max(by_game, key=by_game.__getitem__) == game_names(1)[0]
    assert by_game[game_names(1)[0]] > 3 * min(by_game.values())


def test_every_file_begins_with_a_record_so_that_it_looks_like_json_lines() -> None:
    for file in plan(SMALL):
        assert isinstance(json.loads(text(file).split(b"\n")[0]), dict)


def test_a_file_put_twice_comes_again_later_and_is_the_same() -> None:
    files = list(plan(SMALL))
    again = [file for file in files if file.repeated]
    assert again
    for file in again:
        first, second = (at for at, other in enumerate(files) if other.key == file.key)
        assert files[second] is file
        assert files[first].body == file.body
        assert first < second <= first + 40


def test_ids_are_unique_and_times_are_as_s3_time_stamps_are_written() -> None:
    records = [record for file in plan(SMALL) if not file.repeated for record in objects(file)]
    ids = [record["event_id"] for record in records]
    assert len(set(ids)) == len(ids)
    stamps = [record["event_time"] for record in records if isinstance(record["event_time"], str)]
    assert all(datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%S.%f%z") and len(stamp) == 24 for stamp in stamps)


def test_there_are_as_many_names_of_games_as_anybody_asks_for() -> None:
    assert len(set(game_names(100))) == 100
    assert game_names(100)[:8] == game_names(8)


@pytest.mark.parametrize(("files", "games"), [(0, 3), (1, 3), (2, 1)])
def test_a_feed_may_be_tiny(files: int, games: int) -> None:
    assert len([file for file in plan(Recipe(START, files=files, games=games)) if not file.repeated]) == files


@pytest.mark.parametrize("wrong", [{"files": -1}, {"games": 0}, {"mean_records": 0}, {"start": datetime(2026, 1, 1)}])
def test_a_recipe_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        replace(SMALL, **wrong)


def test_shares_that_are_more_than_everything_are_refused() -> None:
    with pytest.raises(ValueError, match="must not"):
        Mix(unreadable=0.9, late=0.2)


def test_two_hundred_files_are_planned_in_less_than_two_seconds() -> None:
    began = time.process_time()
    assert sum(1 for file in plan(Recipe(START)) if not file.repeated) == 200
    assert time.process_time() - began < 2


# --- the landing ---


@dataclass
class FakeS3:
    """A bucket, with or without versions, that refuses the key it was told to."""

    versioned: bool = False
    refuses: str = ""
    puts: list[tuple[str, bytes]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, ContentType: str) -> dict[str, str]:  # noqa: N803
        if Key == self.refuses:
            raise ConnectionError(Key)
        with self.lock:
            self.puts.append((Key, Body))
            version = {"VersionId": f"v{len(self.puts)}"} if self.versioned else {}
        return {"ETag": f'"{hashlib.md5(Body).hexdigest()}"', **version}


def test_what_was_dropped_is_what_the_bucket_holds() -> None:
    s3, files = FakeS3(), list(plan(SMALL))
    dropped = drop(s3, "landing", files)
    firsts = [file for file in files if not file.repeated]
    assert dropped.files == len(s3.puts) == len(files)
    assert dropped.duplicates == len(files) - len(firsts)
    assert dropped.put_bytes == sum(len(body) for _, body in s3.puts)
    assert [(file.key, file.etag, file.version_id, file.size) for file in dropped.versions] == [
        (file.key, hashlib.md5(file.body).hexdigest(), None, len(file.body)) for file in firsts
    ]
    assert dropped.tally == sum_of(firsts)


def test_in_a_versioned_bucket_a_file_put_twice_is_two_versions() -> None:
    files = list(plan(SMALL))
    dropped = drop(FakeS3(versioned=True), "landing", files)
    assert dropped.duplicates == 0
    assert dropped.different == len({(file.key, file.body) for file in files})
    assert dropped.tally == drop(FakeS3(), "landing", files).tally
    assert len({file.identity for file in dropped.versions}) == len(files)


def test_files_are_put_at_the_rate_that_was_asked_for() -> None:
    now, pauses = [100.0], []

    def sleep(pause_s: float) -> None:
        pauses.append(pause_s)
        now[0] += pause_s

    drop(FakeS3(), "landing", list(plan(SMALL))[:9], rate=4, clock=lambda: now[0], sleep=sleep)
    assert pauses == [0.0, *[0.25] * 8]


def test_each_put_is_reported_in_the_order_of_the_plan() -> None:
    files, seen = list(plan(SMALL)), []
    drop(FakeS3(), "landing", files, on_put=seen.append)
    assert seen == files


def test_a_put_that_fails_ends_the_feed_soon_and_is_raised() -> None:
    files = list(plan(SMALL))
    s3 = FakeS3(refuses=files[10].key)
    with pytest.raises(ConnectionError):
        drop(s3, "landing", iter(files))
    assert 10 <= len(s3.puts) < 16


# --- messages by hand ---


@dataclass
class FakeQueue:
    refuses: bool = False
    batches: list[list[dict[str, Any]]] = field(default_factory=list)

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        self.batches.append(Entries)
        return {"Failed": [{"Id": "0", "Code": "InternalError"}]} if self.refuses else {}


def test_the_messages_of_chaos_are_sent_in_their_order() -> None:
    messages = Chaos.of_every_kind(seed=3).announce(drop(FakeS3(), "landing", plan(SMALL)).versions).messages
    queue = FakeQueue()
    assert send_messages(queue, "url", messages) == len(messages) > 10
    assert max(map(len, queue.batches)) == 10
    sent = [Message(entry["MessageBody"], entry["DelaySeconds"]) for batch in queue.batches for entry in batch]
    assert tuple(sent) == messages


def test_a_queue_that_refuses_a_message_is_not_passed_over() -> None:
    with pytest.raises(TryAgain, match=r"refused 1 of 1 message: .*InternalError"):
        send_messages(FakeQueue(refuses=True), "url", [Message("{}")])


# --- an account of one's own ---


def counted(file: DroppedFile) -> Tally:
    """By the definitions alone, with nothing of the feed but the names of its games."""
    clean: Counter[str] = Counter()
    mistyped: Counter[str] = Counter()
    rest: Counter[str] = Counter()
    for line in text(file).split(b"\n"):
        if not line:
            continue
        record = parsed(line)
        if not isinstance(record, dict):
            rest["unreadable"] += 1
        elif record.get("game") is None:
            rest["gameless"] += 1
        elif record["game"] not in game_names(SMALL.games):
            rest["unknown"] += 1
        elif not well_typed(record):
            mistyped[record["game"]] += 1
        else:
            clean[record["game"]] += 1
            rest["late"] += landed(file) - datetime.fromisoformat(record["event_time"]) >= timedelta(hours=1)
    return Tally(dict(clean), dict(mistyped), rest["unknown"], rest["gameless"], rest["unreadable"], rest["late"])


def parsed(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"))
    except ValueError:
        return None


def objects(file: DroppedFile) -> list[dict[str, Any]]:
    return [record for line in text(file).split(b"\n") if isinstance(record := parsed(line), dict)]


def well_typed(record: dict[str, Any]) -> bool:
    player, device, items = record["player"], record["device"], record["items"]
    return (
        isinstance(record["event_time"], str)
        and isinstance(player, dict)
        and isinstance(player["level"], int)
        and isinstance(device, dict)
        and isinstance(device["os"], str)
        and isinstance(items, list)
        and all(isinstance(item["price"]["amount"], float) for item in items)
    )


def text(file: DroppedFile) -> bytes:
    return gzip.decompress(file.body) if file.key.endswith(".gz") else file.body


def landed(file: DroppedFile) -> datetime:
    """When, from the number in its key: they land evenly over the span."""
    number = int(file.key.rpartition("-")[2].partition(".")[0])
    return SMALL.start + SMALL.span * number / SMALL.files


def sum_of(files: Iterable[DroppedFile]) -> Tally:
    return sum((file.tally for file in files), Tally())
