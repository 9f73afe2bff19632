"""Files that were there before: each version is announced, through any interruption, and the ledger's own are left alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from forebay.declaration.loading import load_service
from forebay.errors import Halt
from forebay.landed_file import LandedFile
from forebay.notification.order import written_later
from forebay.notification.reading import read_message
from forebay.settings import ReconcileSettings
from forebay.upkeep.complete.look import Landing
from forebay.upkeep.reconcile.backfill import Backfill, Progress, Waits, backfill, progress_of
from forebay.upkeep.reconcile.job import find_missed
from tests.files_alive import files_alive
from tests.operate.ledger import entry, write_ledger

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
A_PAGE = 3


class S3:
    """A bucket that lists three versions a page. A key that is there twice has two versions, and one with a minus was deleted.
    The newest version of a key is listed first. Puts between two deletions share a second."""

    def __init__(self, *puts: str, days: float = 1) -> None:
        ordered = sorted(enumerate(puts), key=lambda put: (put[1].lstrip("-"), -put[0]))
        newest = {put.lstrip("-"): n for n, put in sorted(ordered)}
        self.entries: list[dict[str, Any]] = [
            {
                "Key": put.lstrip("-"),
                "VersionId": f"v{n}" if len(newest) < len(puts) else "null",
                "ETag": "" if _is_deletion(put) else f'"e{n}"',
                "Size": 10,
                "LastModified": NOW
                - timedelta(days=days)
                + timedelta(seconds=len([*filter(_is_deletion, puts[: n + 1])])),
                "IsLatest": newest[put.lstrip("-")] == n,
            }
            for n, put in ordered
        ]
        self.asked: list[tuple[str, str]] = []

    def list_object_versions(self, **asked: str) -> dict[str, Any]:
        """Without a version, it begins after all versions of the key."""
        after = (asked.get("KeyMarker", ""), asked.get("VersionIdMarker", ""))
        self.asked.append(after)
        inside = [one for one in self.entries if one["Key"].startswith(asked["Prefix"])]
        there = [n for n, one in enumerate(inside, 1) if after in ((one["Key"], ""), (one["Key"], one["VersionId"]))]
        begin = max(there, default=0)
        page = inside[begin : begin + A_PAGE]
        told = {
            "Versions": [one for one in page if one["ETag"]],
            "DeleteMarkers": [one for one in page if not one["ETag"]],
        }
        if begin + A_PAGE >= len(inside):
            return {**told, "IsTruncated": False}
        following = {"NextKeyMarker": page[-1]["Key"], "NextVersionIdMarker": page[-1]["VersionId"]}
        return {**told, "IsTruncated": True, **following}

    def get_paginator(self, name: str) -> S3:
        assert name == "list_object_versions"
        return self

    def paginate(self, *, Delimiter: str = "", **asked: str) -> Iterator[dict[str, Any]]:  # noqa: N803
        """The folders of these tests are flat."""
        page = self.list_object_versions(**asked)
        yield page
        while page["IsTruncated"]:
            after = {"KeyMarker": page["NextKeyMarker"], "VersionIdMarker": page["NextVersionIdMarker"]}
            yield (page := self.list_object_versions(**asked, **after))


def _is_deletion(put: str) -> bool:
    return put.startswith("-")


class Sqs:
    def __init__(self, *, waiting: Iterator[int] | None = None, refuses: bool = False) -> None:
        self.waiting, self.refuses, self.files = waiting, refuses, list[LandedFile]()
        self.fail_after = 10**6

    @property
    def keys(self) -> list[str]:
        return [file.key for file in self.files]

    def get_queue_attributes(self, **_: Any) -> dict[str, Any]:
        return {"Attributes": {"ApproximateNumberOfMessages": str(next(self.waiting) if self.waiting else 0)}}

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, str]]) -> dict[str, Any]:  # noqa: N803
        if self.refuses:
            return {"Failed": [{"Id": one["Id"]} for one in Entries]}
        self.files += [file for one in Entries for file in read_message(one["MessageBody"]).files]
        self.fail_after -= 1
        if self.fail_after == 0:
            raise ConnectionError("the answer was lost")
        return {}


def wanted(lake: Path, **more: Any) -> Backfill:
    return Backfill(lake=str(lake), bucket="landing", prefix="in/", queue_url="q", services=("games",), **more)


def run(lake: Path, s3: S3, sqs: Sqs, told: list[Any] | None = None, **more: Any) -> Progress:
    options = {name: more.pop(name) for name in ("dry_run", "again") if name in more}
    told = [] if told is None else told
    sleep = more.pop("sleep", lambda _: None)
    return backfill(wanted(lake, **more), s3=s3, sqs=sqs, tell=told.append, sleep=sleep, **options)


KEYS = [f"in/{n}.json" for n in range(8)]


def test_what_the_ledger_does_not_know_is_announced_once(tmp_path: Path) -> None:
    write_ledger(tmp_path, entry("in/2.json", etag="e2"))
    sqs = Sqs()
    done = run(tmp_path, S3(*KEYS, "out/other.json"), sqs)
    assert sqs.keys == [key for key in KEYS if key != "in/2.json"]
    assert (done.looked_at, done.known, done.announced, done.bytes, done.done) == (8, 1, 7, 70, True)
    assert run(tmp_path, S3(*KEYS), sqs) == done
    assert len(sqs.keys) == 7
    run(tmp_path, S3(*KEYS), sqs, again=True)
    assert len(sqs.keys) == 14


PUTS = ("in/a", "in/a", "in/b", "in/c", "-in/b", "in/c", "-in/c", "in/c", "in/c", "in/c", "in/d")
"""The listing of in/c has three pages."""


def test_of_a_key_that_was_written_twice_the_older_version_is_announced_first(tmp_path: Path) -> None:
    sqs = Sqs()
    done = run(tmp_path, S3(*PUTS), sqs)
    assert [file.version_id for file in sqs.files] == ["v0", "v1", "v2", "v3", "v5", "v7", "v8", "v9", "v10"]
    for earlier, later in pairwise(file for file in sqs.files if file.key == "in/c"):
        assert (written_later(later, earlier), written_later(earlier, later)) == (True, False)
    assert (done.looked_at, done.announced, done.not_current) == (9, 9, 6)


def test_a_key_may_have_more_versions_than_a_page_of_the_listing(tmp_path: Path) -> None:
    sqs = Sqs()
    assert run(tmp_path, S3(*["in/a"] * 7, "in/b"), sqs).done
    assert [file.version_id for file in sqs.files] == [f"v{n}" for n in range(8)]


@pytest.mark.parametrize("on_delete", ["ignore", "forget"])
def test_a_backfill_announces_what_an_hour_waits_for_and_what_find_missed_finds(on_delete: str, tmp_path: Path) -> None:
    """Otherwise an hour of these files would never be complete."""
    text = f'name = "games"\non_delete = "{on_delete}"\nenvelope.complete.quiet_minutes = 30\n[[tables]]\nname = "t"\n'
    (tmp_path / "games").mkdir()
    (tmp_path / "games" / "service.toml").write_text(text)
    (feed,) = load_service(str(tmp_path / "games")).all_feeds
    assert feed.complete is not None
    hour, without_deleted = feed.complete.period_before(NOW - timedelta(hours=23)), on_delete == "forget"
    waits = Landing(lambda: S3(*PUTS), ["landing"]).files(feed, feed.complete, hour, without_deleted=without_deleted)
    told = {"lake": str(tmp_path), "queue_url": "q", "landing": "s3://landing/in/", "service": str(tmp_path / "games")}
    missed = find_missed(ReconcileSettings(**told), s3=S3(*PUTS), sqs=Sqs(), now=NOW).missed
    run(tmp_path, S3(*PUTS), sqs := Sqs(), without_deleted=without_deleted)
    announced = {file.file_id for file in sqs.files}
    assert announced == {file.file_id for file in waits} == {file.file_id for file in missed}
    assert len(announced) == (6 if without_deleted else 9)


def test_on_request_only_current_objects_are_announced(tmp_path: Path) -> None:
    assert run(tmp_path, S3(*PUTS), sqs := Sqs(), without_deleted=True, only_current=True).not_current == 0
    assert [file.version_id for file in sqs.files] == ["v1", "v9", "v10"]
    assert run(tmp_path, S3(*PUTS), Sqs(), without_deleted=True).announced == 6, "it is another backfill"


def test_deleted_versions_that_a_run_left_out_are_another_backfill(tmp_path: Path) -> None:
    assert run(tmp_path, S3(*PUTS), Sqs(), without_deleted=True).done
    assert run(tmp_path, S3(*PUTS), Sqs()).announced == 9


@pytest.mark.parametrize("answers", range(1, 5))
def test_a_backfill_goes_on_at_the_beginning_of_a_key(answers: int, tmp_path: Path) -> None:
    """So it knows the deletion that followed a version, and the order of versions of one second."""
    s3, sqs = S3(*PUTS), Sqs()
    run(tmp_path / "whole", s3, sqs, without_deleted=True)
    again = Sqs()
    again.fail_after = answers
    with suppress(ConnectionError):
        run(tmp_path, s3, again, without_deleted=True)
    run(tmp_path, s3, again, without_deleted=True)
    assert {(file.file_id, file.event_time) for file in again.files} == {
        (file.file_id, file.event_time) for file in sqs.files
    }


@pytest.mark.parametrize("answers", range(1, 4))
def test_an_interrupted_backfill_goes_on_and_misses_nothing(tmp_path: Path, answers: int) -> None:
    s3, sqs = S3(*KEYS), Sqs()
    sqs.fail_after = answers
    with pytest.raises(ConnectionError):
        run(tmp_path, s3, sqs)
    before = progress_of(wanted(tmp_path))
    # The last key of a page waits for the next one, which may have more versions of it.
    assert (before.done, before.announced) == (False, max(0, A_PAGE * (answers - 1) - 1))
    s3.asked.clear()
    assert run(tmp_path, s3, sqs).done
    # The page whose answer was lost is announced again: the ledger knows it.
    assert sorted(set(sqs.keys)) == KEYS
    assert len(sqs.keys) <= len(KEYS) + A_PAGE
    assert s3.asked[0] == before.marker


def test_a_refusal_of_the_queue_ends_it_before_the_page_counts(tmp_path: Path) -> None:
    with pytest.raises(Halt, match=r"the queue refused 2 files, such as in/0\.json"):
        run(tmp_path, S3(*KEYS), Sqs(refuses=True))
    assert progress_of(wanted(tmp_path)) == Progress()


def test_live_traffic_goes_before(tmp_path: Path) -> None:
    told: list[Any] = []
    run(tmp_path, S3(*KEYS[:2]), Sqs(waiting=iter([500, 201, 200])), told)
    assert told[:2] == [Waits(500), Waits(201)]
    assert told[2].announced == 2


def test_no_more_files_a_second_are_announced_than_wanted(tmp_path: Path) -> None:
    write_ledger(tmp_path, entry("in/0.json", etag="e0"))
    slept: list[Any] = []
    run(tmp_path, S3(*KEYS), Sqs(), rate=4, sleep=slept.append)
    assert slept == [1 / 4, 3 / 4, 3 / 4], "files that the ledger knows cost no time"
    slept.clear()
    told: list[Any] = []
    sqs = Sqs()
    run(tmp_path, S3(*KEYS), sqs, told, rate=2, again=True, sleep=lambda s: slept.append((s, len(sqs.keys))))
    assert slept == [(0.5, 1), (1, 3), (0.5, 4), (1, 6), (0.5, 7)], "nothing is sent ahead of its second"
    assert [one.announced for one in told] == [1, 3, 4, 6, 7], "a page that takes long is seen to go on"
    slept.clear()
    run(tmp_path, S3(*KEYS), Sqs(), rate=4, sleep=slept.append, dry_run=True)
    run(tmp_path, S3(*KEYS), Sqs(), again=True, sleep=slept.append)
    assert slept == []


def test_a_bucket_is_never_held_however_many_files_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive, held = files_alive(monkeypatch, "forebay.upkeep.reconcile.landed"), list[int]()

    class Long(S3):
        def list_object_versions(self, **asked: str) -> dict[str, Any]:
            held.append(len(alive))
            begin = int(asked.get("KeyMarker", "in/0")[3:])
            told = {"VersionId": "null", "ETag": '"e"', "Size": 10, "LastModified": NOW, "IsLatest": True}
            page = [{"Key": f"in/{n:05}", **told} for n in range(begin, begin + 200)]
            more = begin + 200 < 4000
            return {
                "Versions": page,
                "IsTruncated": more,
                **({"NextKeyMarker": f"in/{begin + 200:05}"} if more else {}),
            }

    done = run(tmp_path, Long(), Sqs())
    assert (done.looked_at, done.announced, len(held)) == (4000, 4000, 20)
    assert 0 < max(held) <= 400, held


def test_a_dry_run_counts_and_leaves_no_trace(tmp_path: Path) -> None:
    sqs = Sqs()
    done = run(tmp_path, S3(*KEYS), sqs, dry_run=True)
    assert (done.announced, sqs.keys, list(tmp_path.iterdir())) == (8, [], [])


def test_only_files_of_the_span_are_taken_and_another_span_is_another_backfill(tmp_path: Path) -> None:
    s3 = S3(*KEYS, days=2)
    assert run(tmp_path, s3, Sqs(), since=NOW - timedelta(days=1)).announced == 0
    assert run(tmp_path, s3, Sqs(), until=NOW - timedelta(days=2)).announced == 0
    assert run(tmp_path, s3, Sqs(), since=NOW - timedelta(days=2), until=NOW).announced == 8


def test_progress_survives_as_json(tmp_path: Path) -> None:
    run(tmp_path, S3(*KEYS), Sqs())
    (file,) = (tmp_path / "_forebay" / "backfill").iterdir()
    assert json.loads(file.read_text())["announced"] == 8
    assert progress_of(wanted(tmp_path)).done
