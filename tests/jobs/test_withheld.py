"""Files that S3 withheld come again by themselves: with pauses that grow, through restarts, and never all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

import forebay.jobs.withheld as job
from forebay.errors import TryAgain
from forebay.events import Event
from forebay.jobs.withheld import LOOK_EVERY, Announcer, FilesNotRetried, FilesRetried
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.entry import Entry
from forebay.ledger.withheld import FIRST_PAUSE, LONGEST_PAUSE, Withheld, withheld_in
from tests.operate.ledger import AT, entry, write_ledger

MINUTE = timedelta(minutes=1)


class Service:
    """A driver whose queue is a list, with a clock of ours."""

    def __init__(self, lake: Path, now: datetime = AT) -> None:
        self.lake, self.now = lake, now
        self.events: list[Event] = []
        self.queue: list[LandedFile] = []
        self.refused: list[str] = []
        self.out_of_reach = False
        self.trouble: Exception = TryAgain("SQS does not answer")
        self.restart()

    def restart(self) -> None:
        self.withheld = Withheld()
        ledger = open_objects(f"{self.lake}/_forebay/ledger")
        self.announcer = Announcer(
            "games", self.withheld, ledger, self.announce, emit=self.events.append, clock=lambda: self.now
        )

    def announce(self, files: Sequence[LandedFile]) -> list[str]:
        if self.out_of_reach:
            raise self.trouble
        self.queue += [file for file in files if file.key not in self.refused]
        return self.refused

    def looks(self, after: timedelta) -> list[str]:
        """The keys that come into the queue, when the job looks every second for so long."""
        self.queue, until = [], self.now + after
        while self.now < until:
            self.now += MINUTE
            self.announcer.look()
        return [file.key for file in self.queue]

    def batch(self, *entries: Entry) -> None:
        self.withheld.note(entries, self.now)


def file(key: str) -> LandedFile:
    return LandedFile("landing", key, 100, "e1")


def denied(key: str, tries: int = 1) -> Entry:
    return Entry(file=file(key), outcome="denied", tries=tries)


@pytest.mark.parametrize("outcome", ["denied", "unavailable"])
def test_a_file_that_s3_refused_for_a_moment_is_announced_again_minutes_later(tmp_path: Path, outcome: str) -> None:
    service = Service(tmp_path)
    service.batch(Entry(file=file("in/a.json"), outcome=outcome))  # type: ignore[arg-type]
    assert service.looks(FIRST_PAUSE - MINUTE) == []
    assert service.looks(LOOK_EVERY) == ["in/a.json"]
    service.batch(Entry(file=file("in/a.json"), outcome="loaded", tries=2))
    assert service.looks(timedelta(days=1)) == []


def test_a_key_policy_that_is_wrong_for_a_day_is_tried_with_pauses_that_grow(tmp_path: Path) -> None:
    service, tried_at = Service(tmp_path), [AT]
    service.batch(denied("in/a.json"))
    while service.now < AT + timedelta(days=1):
        if service.looks(MINUTE):
            tried_at.append(service.now)
            service.batch(denied("in/a.json", tries=len(tried_at)))
    pauses = [later - earlier for earlier, later in pairwise(tried_at)]
    assert len(pauses) < 12
    assert all(b >= a for a, b in pairwise(pauses))
    assert pauses[0] < 2 * FIRST_PAUSE
    assert pauses[-1] < LONGEST_PAUSE + 2 * LOOK_EVERY


def test_a_job_that_starts_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    rows = [
        entry("in/due.json", outcome="denied", tries=3, committed_at=AT - timedelta(hours=1)),
        entry("in/later.json", outcome="unavailable", tries=6, committed_at=AT - timedelta(hours=1)),
        entry("in/of-other-code.json", outcome="denied", committed_at=AT - timedelta(hours=1)),
        entry("in/put-again.json", outcome="superseded", reason="put-again", committed_at=AT - timedelta(hours=1)),
        entry("in/loaded.json"),
        entry("in/torn.json", outcome="unreadable"),
        entry("in/of-another-service.json", outcome="denied", tries=1, service="others"),
    ]
    write_ledger(tmp_path, *rows)
    service = Service(tmp_path)
    assert sorted(service.looks(MINUTE)) == ["in/due.json", "in/of-other-code.json", "in/put-again.json"]
    assert service.looks(timedelta(hours=3)) == ["in/later.json"]
    service.restart()
    assert sorted(service.looks(MINUTE)) == [
        *("in/due.json", "in/later.json", "in/of-other-code.json", "in/put-again.json")
    ]


def test_a_row_that_lacks_what_earlier_code_did_not_write_is_due_at_once_and_was_tried_once(tmp_path: Path) -> None:
    write_ledger(tmp_path, entry("in/a.json", outcome="denied", etag=None, committed_at=None))
    (one,) = withheld_in(open_objects(f"{tmp_path}/_forebay/ledger"), "games")
    assert (one.file.etag, one.tries, one.due < AT) == ("", 1, True)


def test_a_hundred_thousand_denied_files_come_a_few_at_a_time_and_each_of_them_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "MOST_AT_ONCE", 10)
    service = Service(tmp_path)
    service.batch(*(denied(f"in/{n}.json") for n in range(25)))
    service.now += timedelta(hours=1)
    looks = [service.looks(LOOK_EVERY) for _ in range(3)]
    assert [len(keys) for keys in looks] == [10, 10, 5]
    assert sorted(key for keys in looks for key in keys) == sorted(f"in/{n}.json" for n in range(25))


@pytest.mark.parametrize("trouble", [TryAgain("SQS does not answer"), ValueError("Invalid endpoint")])
def test_a_queue_that_does_not_answer_ends_no_job_and_loses_no_file(tmp_path: Path, trouble: Exception) -> None:
    service = Service(tmp_path)
    service.trouble = trouble
    service.batch(denied("in/a.json"), denied("in/b.json"))
    service.out_of_reach, service.now = True, AT + timedelta(hours=1)
    assert service.looks(MINUTE) == []
    assert [type(event) for event in service.events] == [FilesNotRetried]
    service.out_of_reach, service.refused = False, ["in/b.json"]
    assert service.looks(LOOK_EVERY) == ["in/a.json"]
    assert service.events[-1] == FilesRetried(service="games", files=1, refused=1, such_as="s3://landing/in/a.json")
    service.refused = []
    assert service.looks(LOOK_EVERY) == ["in/b.json"]


def test_memory_holds_a_bounded_number_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forebay.ledger.withheld.MOST_KNOWN", 3)
    withheld = Withheld()
    withheld.note([denied(f"in/{n}.json") for n in range(5)], AT)
    assert len(withheld) == 3
    withheld.note([replace(denied("in/0.json"), outcome="loaded")], AT)
    assert len(withheld) == 2
    assert len(withheld.take_due(datetime.max.replace(tzinfo=UTC), 10)) == 2
