"""Histories on paper of a service that forgets what is deleted: keys are put, overwritten, deleted and put again. Their notices
arrive in any order and more than once, and drivers die after any effect. What was written after the last deletion of a key
stands, and nothing that was written before it.

FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from forebay.landed_file import DELETED, LandedFile
from forebay.ledger.entry import FORGET, NOT_FINAL
from tests.batch.test_paper_histories import AT, Play, in_time, play_all, service

FORGETS = 'on_delete = "forget"\n'


class Deletions(Play):
    """No operator acts, no table fails, and there is one service."""

    operator_acts = False

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.dedupe = self.tables_fail = self.rolls_back = False
        self.beside = None
        self.service = service(False, FORGETS)
        self.written: dict[str, int] = {}
        """When each file was put last, by its id."""
        self.deleted: dict[str, int] = {}
        """When each key was deleted last."""
        self.cleared: set[str] = set()
        """Versions that `after_load` deleted, until they are put again."""
        self.purged: set[str] = set()
        """Versions that were deleted for good, by their ids."""
        self.notices: list[LandedFile] = []

    def play(self) -> None:
        for key in self.keys:
            self.put(key)
        deeds = {
            self.purge: 4 * self.versioned,
            self.put: 4,
            self.put_back: 4,
            self.unlink: 4,
            self.clear: 3,
            self.withhold: 1,
            self.mend: 2,
            self.announce_again: 3,
        }
        self.do(deeds, 16)

    def announce(self, put: Any) -> None:
        super().announce(put)
        self.cleared.discard(put.file.file_id)
        self.written[put.file.file_id] = self.versions.total()
        self.notices.append(put.file)

    def put_back(self, key: str) -> None:
        """The bytes of any earlier version, also those that are there now, or that were deleted."""
        put = self.draw.choice([put for put in self.model.puts.values() if put.file.key == key])
        newest = self.model.newest.get(key)
        self.versions[key] += 1
        at = AT + timedelta(seconds=sum(self.versions.values()))
        if self.versioned:
            self.put_same_bytes(put, at)
            return
        if newest is not None:
            self.lake.answers[newest.file.file_id] = "changed"
        file = replace(put.file, sequencer=f"{self.versions.total():016X}", event_time=at)
        self.lake.answers[file.file_id] = self.contents[file.file_id]
        self.announce(replace(put, file=file))

    def unlink(self, key: str) -> None:
        """As a producer does. A bucket with versions keeps them behind a delete marker."""
        if key in self.model.newest and self.newest_of(key) not in self.cleared:
            self.announce_deletion(key)
            self.deleted[key] = self.versions.total()
            self.model.delete(key)

    def clear(self, key: str) -> None:
        """As `after_load` does, which was declared before: the newest version was loaded, and its rows are wanted. Its note
        comes before the notice."""
        loaded = {row["file_id"] for row in self.ledger() if row["outcome"] == "loaded"}
        if key in self.model.newest and self.newest_of(key) in loaded - self.cleared:
            self.cleared.add(self.newest_of(key))
            self.lake.cleared.add(self.announce_deletion(key).file_id)

    def newest_of(self, key: str) -> str:
        return self.model.newest[key].file.file_id

    def announce_deletion(self, key: str) -> LandedFile:
        self.versions[key] += 1
        at = self.versions.total()
        sequencer = f"{at:016X}"
        notice = LandedFile("landing", key, 0, f"{DELETED}{sequencer}", None, sequencer, AT + timedelta(seconds=at))
        if not self.versioned:
            self.lake.answers[self.newest_of(key)] = "missing"
        self.waiting.append(notice)
        self.notices.append(notice)
        return notice

    def purge(self, key: str) -> None:
        """One version of a bucket that keeps them is deleted for good."""
        there = [put.file for one, put in self.model.puts.items() if put.file.key == key and one not in self.purged]
        if not there:
            return
        file = self.draw.choice(there)
        self.versions[key] += 1
        at = self.versions.total()
        sequencer = f"{at:016X}"
        notice = LandedFile(
            "landing", key, 0, f"{DELETED}{sequencer}", file.version_id, sequencer, AT + timedelta(seconds=at)
        )
        self.purged.add(file.file_id)
        self.expired.add(file.file_id)
        self.lake.answers[file.file_id] = "missing"
        if self.is_newest(file):
            self.model.delete(key)
        self.waiting.append(notice)
        self.notices.append(notice)

    def announce_again(self, key: str) -> None:
        self.waiting.append(self.draw.choice(self.notices))

    def attempt(self, dies_after: int | None = None) -> None:
        """Of what waits, a part arrives, in any order."""
        late: list[LandedFile] = []
        if not self.taken and not self.ending:
            self.draw.shuffle(self.waiting)
            late = [self.waiting.pop() for _ in range(self.draw.randint(0, len(self.waiting)))]
        if self.taken or self.waiting:
            super().attempt(dies_after)
        self.waiting += late

    def end(self) -> None:
        """Whatever S3 announced may come once more, after everything else."""
        super().end()
        self.waiting = self.draw.sample(self.notices, self.draw.randint(0, len(self.notices)))
        self.attempt()
        self.announce_what_ended_as(NOT_FINAL)

    def what_should_stand(self, ledger: Sequence[dict[str, Any]]) -> None:
        rows = {row["file_id"]: row for row in ledger}
        assert self.written.keys() <= rows.keys()
        for one in self.written:
            held = rows[one]["written"] + rows[one]["quarantined"] + rows[one]["parked"]
            assert rows[one]["outcome"] == "loaded" or held == 0, (
                f"{rows[one]['etag']}, {rows[one]['outcome']}, has rows"
            )
        if self.versioned:
            self.bytes_stand_once(rows)
        else:
            self.files_stand(rows)
        for key, at in self.deleted.items():
            (last,) = [row for row in ledger if row["key"] == key and row["etag"] == f"{DELETED}{at:016X}"]
            assert (last["outcome"], last["records"]) == ("deleted", 0)

    def is_deleted(self, one: str) -> bool:
        return one in self.purged or self.written[one] < self.deleted.get(self.model.puts[one].file.key, 0)

    def files_stand(self, rows: dict[str, dict[str, Any]]) -> None:
        for one in filter(self.is_deleted, self.written):
            assert rows[one]["outcome"] == "superseded", f"{rows[one]['etag']}: its key was deleted later"
        for put in self.model.newest.values():
            row = rows[put.file.file_id]
            assert (row["outcome"], row["records"], row["tables"]) == ("loaded", put.records, put.tables), row["etag"]

    def bytes_stand_once(self, rows: dict[str, dict[str, Any]]) -> None:
        """However many versions have them."""
        puts = self.model.puts
        stand = [self.bytes_of(one) for one in puts if rows[one]["outcome"] == "loaded"]
        replaced = {one for one, put in puts.items() if put.replaces and not self.is_newest(put.file)}
        should = {self.bytes_of(one) for one in puts.keys() - replaced if not self.is_deleted(one)}
        # If the newest version of a key was deleted for good, an earlier one stands only if it arrived last.
        topless = {put.file.key for put in puts.values() if put.replaces} - self.model.newest.keys()
        left = [one for one in puts if puts[one].file.key in topless and not self.is_deleted(one)]
        may = {self.bytes_of(one) for one in left}
        assert len(stand) == len({*stand})
        assert should <= {*stand} <= should | may, (stand, should, may)

    def is_newest(self, file: LandedFile) -> bool:
        newest = self.model.newest.get(file.key)
        return newest is not None and newest.file == file

    def bytes_of(self, one: str) -> tuple[str, str]:
        return self.model.puts[one].file.key, self.lake.hashes[one]


@in_time
def test_what_was_written_after_the_last_deletion_of_a_key_stands_and_nothing_before_it() -> None:
    play_all(Deletions)


def test_a_mark_is_kept_that_an_operator_makes_before_the_time_of_a_file_changes() -> None:
    """Its bytes were put again, so the batch changes the time in its row, and only that."""
    with pytest.MonkeyPatch.context() as patch:
        play = Deletions(0, patch)
        play.versioned = False
        play.put("add/a")
        play.attempt()
        play.put_back("add/a")
        (again,) = play.waiting
        play.lake.meanwhile = (0, lambda: play.ledger()[0].update(outcome=FORGET))
        play.driver().load(play.waiting, play.batch)
        (row,) = play.ledger()
        assert (row["outcome"], row["sequencer"]) == (FORGET, again.sequencer)
