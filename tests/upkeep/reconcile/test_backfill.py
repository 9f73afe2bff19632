"""Files that were there before: each is announced, through any interruption, and the ledger's own are left alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from forebay.errors import Halt
from forebay.notification.reading import read_message
from forebay.upkeep.reconcile.backfill import Backfill, Progress, Waits, backfill, progress_of
from tests.files_alive import files_alive
from tests.operate.ledger import entry, write_ledger

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
A_PAGE = 3


class S3:
    """A bucket that lists three versions a page; a key that is there twice has two versions, the newest first."""

    def __init__(self, *keys: str, days: float = 1) -> None:
        ordered = sorted(enumerate(keys), key=lambda pair: (pair[1], -pair[0]))
        self.versions = [
            {
                "Key": key,
                "VersionId": "null",
                "ETag": f'"e{n}"',
                "Size": 10,
                "LastModified": NOW - timedelta(days=days),
                "IsLatest": n == max(m for m, other in ordered if other == key),
            }
            for n, key in ordered
        ]
        self.asked: list[tuple[str, str]] = []

    def list_object_versions(self, **asked: str) -> dict[str, Any]:
        after = (asked.get("KeyMarker", ""), asked.get("VersionIdMarker", ""))
        self.asked.append(after)
        inside = [one for one in self.versions if one["Key"].startswith(asked["Prefix"])]
        begin = next((n + 1 for n, one in enumerate(inside) if (one["Key"], one["ETag"]) == after), 0)
        page = inside[begin : begin + A_PAGE]
        if begin + A_PAGE >= len(inside):
            return {"Versions": page, "IsTruncated": False}
        following = {"NextKeyMarker": page[-1]["Key"], "NextVersionIdMarker": page[-1]["ETag"]}
        return {"Versions": page, "IsTruncated": True, **following}


class Sqs:
    def __init__(self, *, waiting: Iterator[int] | None = None, refuses: bool = False) -> None:
        self.waiting, self.refuses, self.keys = waiting, refuses, list[str]()
        self.fail_after = 10**6

    def get_queue_attributes(self, **_: Any) -> dict[str, Any]:
        return {"Attributes": {"ApproximateNumberOfMessages": str(next(self.waiting) if self.waiting else 0)}}

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, str]]) -> dict[str, Any]:  # noqa: N803
        if self.refuses:
            return {"Failed": [{"Id": one["Id"]} for one in Entries]}
        self.keys += [file.key for one in Entries for file in read_message(one["MessageBody"]).files]
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


def test_of_a_key_that_was_written_twice_the_newest_version_is_taken(tmp_path: Path) -> None:
    sqs = Sqs()
    assert run(tmp_path, S3("in/a", "in/a", "in/b"), sqs).announced == 2
    assert sqs.keys == ["in/a", "in/b"]


@pytest.mark.parametrize("answers", range(1, 4))
def test_an_interrupted_backfill_goes_on_and_misses_nothing(tmp_path: Path, answers: int) -> None:
    s3, sqs = S3(*KEYS), Sqs()
    sqs.fail_after = answers
    with pytest.raises(ConnectionError):
        run(tmp_path, s3, sqs)
    before = progress_of(wanted(tmp_path))
    assert (before.done, before.announced) == (False, A_PAGE * (answers - 1))
    s3.asked.clear()
    assert run(tmp_path, s3, sqs).done
    # The page whose answer was lost is announced again: the ledger knows it.
    assert sorted(set(sqs.keys)) == KEYS
    assert len(sqs.keys) <= len(KEYS) + A_PAGE
    assert s3.asked[0] == before.marker


def test_a_refusal_of_the_queue_ends_it_before_the_page_counts(tmp_path: Path) -> None:
    with pytest.raises(Halt, match=r"the queue refused 3 files, such as in/0\.json"):
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
    assert slept == [2 / 4, 3 / 4, 2 / 4], "files that the ledger knows cost no time"
    slept.clear()
    told: list[Any] = []
    sqs = Sqs()
    run(tmp_path, S3(*KEYS), sqs, told, rate=2, again=True, sleep=lambda s: slept.append((s, len(sqs.keys))))
    assert slept == [(1, 2), (1, 4), (0.5, 5), (1, 7)], "nothing is sent ahead of its second"
    assert [one.announced for one in told] == [2, 4, 5, 7], "a page that takes long is seen to go on"
    slept.clear()
    run(tmp_path, S3(*KEYS), Sqs(), rate=4, sleep=slept.append, dry_run=True)
    run(tmp_path, S3(*KEYS), Sqs(), again=True, sleep=slept.append)
    assert slept == []


def test_a_bucket_is_never_held_however_many_files_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive, held = files_alive(monkeypatch, "forebay.upkeep.reconcile.backfill"), list[int]()

    class Long(S3):
        def list_object_versions(self, **asked: str) -> dict[str, Any]:
            held.append(len(alive))
            begin = int(asked.get("KeyMarker", "0"))
            told = {"VersionId": "null", "ETag": '"e"', "Size": 10, "LastModified": NOW, "IsLatest": True}
            page = [{"Key": f"in/{n:05}", **told} for n in range(begin, begin + 200)]
            more = begin + 200 < 4000
            return {"Versions": page, "IsTruncated": more, **({"NextKeyMarker": str(begin + 200)} if more else {})}

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
