"""Histories of batches, on paper, with somebody who looks whether hours are complete, at any moment: whenever the table says
that an hour is complete, every file of it is in.

FOREBAY_COMPLETE_HISTORIES=10000 plays so many; FOREBAY_COMPLETE_HISTORY plays one alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from forebay.batch.plan import Plan
from forebay.declaration.complete import Complete, Period
from forebay.declaration.feed import Feed
from forebay.declaration.service import Service
from forebay.lake.layout import COMPLETE, LEDGER
from forebay.lake.listed import Listed
from forebay.landed_file import LandedFile
from forebay.ledger.entry import FORGET, REPLAY, ROLLED_BACK, WANTED_AGAIN, is_final
from forebay.ledger.periods import FeedPeriod, Key, Periods
from forebay.operate.changing import reopen as reopening
from forebay.upkeep.complete.look import Landing, Looker
from forebay.upkeep.complete.watch import arriving
from tests.batch.paper import FIRST, PLACE, Record, Store, lay_out
from tests.batch.test_paper_deletions import Deletions
from tests.batch.test_paper_histories import AT, TABLES, Play, service
from tests.batch.world import Died

KEYS = tuple(f"{rule}/2026-11-21/{hour}/{name}" for rule in ("add", "new") for hour, name in (("10", "a"), ("11", "b")))
LATER = AT + timedelta(days=3)
FOLDER = "*/%Y-%m-%d/%H/"
RULES = ('marker = "_DONE"', 'manifest = "_DONE"', "quiet_minutes = 5")
LEFT_OUT = ("duplicate", "superseded", "skipped", "missing")
"""A later file may end so although nobody read it, or may have been read before it went."""


class Log(Store):
    """The objects of the table of periods; to write one is an effect."""

    def found(self, prefix: str = "", *, after: str = "") -> Iterator[Any]:
        names = sorted(one.name for one in super().found())
        return (Listed(name, 1, AT) for name in names if name.startswith(prefix) and name > after)


@dataclass(frozen=True)
class Bucket(Landing):
    play: Hours | None = None

    def files(self, feed: Feed, rule: Complete, period: Period, *, without_deleted: bool) -> list[LandedFile]:
        assert self.play is not None
        assert without_deleted == (self.play.service.on_delete == "forget")
        self.play.listed, self.play.told = self.play.lying(), dict(self.play.tells)
        markers = () if rule.quiet_minutes else self.play.markers
        return [one for one in (*self.play.listed, *markers) if rule.period_of(one) == period]

    def content(self, file: LandedFile) -> bytes | None:
        assert self.play is not None
        files = self.play.tells.get(self.play.rule.folder_of(file))
        return None if files is None else json.dumps({"files": files}).encode()


class PaperLooker(Looker):
    play: Hours

    def on_their_way(self, service: Service) -> list[LandedFile]:
        return self.play.on_their_way()

    def ledger_rows(self, services: Collection[str], since: datetime) -> list[dict[str, Any]]:
        self.play.read = [dict(row) for row in self.play.ledger()]
        return self.play.read

    def skipped(self, files: Iterable[LandedFile]) -> Collection[str]:
        """The last question of a look, after the listing and the ledger."""
        self.play.while_somebody_looks()
        return ()


class Hours(Play):
    left_out: tuple[str, ...] = LEFT_OUT

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        rule = self.draw.choice(RULES)
        self.keys = KEYS
        declared = f'envelope.complete = {{ folder = "{FOLDER}", {rule} }}\n'
        self.service = service(self.dedupe, declared + f'on_delete = "{self.service.on_delete}"\n')
        self.markers: set[LandedFile] = set()
        """Those that were ever written. S3 also lists the versions of a deleted one."""
        self.tells: dict[str, int] = {}
        """How many files each marker tells of that is there, by its folder; a manifest may tell a wrong number."""
        self.told: dict[str, int] = {}
        """The same, when somebody looked."""
        self.counted: dict[tuple[Key, int], set[str]] = {}
        self.looks, self.begun = True, False
        self.listed: list[LandedFile] = []
        self.read: list[dict[str, Any]] = []
        store: Any = Log(self.lake, f"{PLACE}/{COMPLETE}")
        self.store = store

    @property
    def rule(self) -> Complete:
        rule = self.service.envelope.complete
        assert rule is not None
        return rule

    def lying(self) -> list[LandedFile]:
        """In the bucket, with all versions that it keeps."""
        if self.versioned:
            return [put.file for one, put in self.model.puts.items() if one not in self.expired]
        return [put.file for put in self.model.newest.values()]

    def on_their_way(self) -> list[LandedFile]:
        plans = [Plan.decode(text) for name, text in self.lake.objects.items() if f"/plans/{FIRST}/" in name]
        return [file for plan in plans if not self.has_ended(plan) for file in plan.files]

    def has_ended(self, plan: Plan) -> bool:
        txns = self.lake.tables[LEDGER].txns if LEDGER in self.lake.tables else {}
        return txns.get(f"forebay/{FIRST}/{plan.generation}", -1) >= plan.batch

    def driver(self, dies_after: int | None = None) -> Any:
        self.lake.dies_after = dies_after
        periods = Periods(self.store)

        def arrive(service: Service, files: Collection[LandedFile], to_read: Collection[LandedFile]) -> None:
            arriving(periods, service, files, to_read, LATER, lambda event: None)

        return lay_out(self.patch, self.lake, self.service, self.generation, arriving=arrive)

    def look(self, dies_after: int | None = None) -> None:
        """By the job that ingests, or by reconcile, which may die at it."""
        self.lake.effects, self.lake.dies_after = 0, dies_after
        periods = Periods(self.store)
        looker = PaperLooker(
            PLACE, periods, Bucket(lambda: None, ("landing",), self), emit=self.saw, clock=lambda: LATER
        )
        looker.play = self
        try:
            looker.look(self.service, [*periods.rows()])
        except Died:
            self.said.append(f"a look died after {dies_after}")
        for row in self.complete():
            if (one := (row.key, row.revision)) not in self.counted:
                self.counted[one] = self.all_are_in(row)

    def saw(self, event: Any) -> None:
        self.said.append(str(event))

    def complete(self) -> list[FeedPeriod]:
        return [row for row in Periods(self.store).rows().values() if row.complete_at]

    def rows_of(self, one: FeedPeriod) -> list[dict[str, Any]]:
        return rows_in(self.ledger(), one.period.hour)

    def all_are_in(self, one: FeedPeriod) -> set[str]:
        """The ids of its files, in the ledger that the look read. Judged without the code that judges."""
        rows = {row["file_id"]: row for row in rows_in(self.read, one.period.hour)}
        there = {file.file_id for file in self.listed if f"/{one.period:%H}/" in file.key}
        assert there <= rows.keys(), "an hour is complete without a file that lies there"
        not_done = [row for row in rows.values() if not done(row)]
        assert not_done == [], "an hour is complete with files that are not done"
        loaded = [row for row in rows.values() if row["outcome"] == "loaded"]
        held = sum(row["quarantined"] + row["parked"] for row in loaded)
        assert (one.files, one.rows, one.refused) == (len(loaded), sum(row["written"] for row in loaded), held)
        if not self.rule.quiet_minutes:
            lay = [LandedFile("landing", row["key"]) for row in loaded]  # after_load may have moved some
            folders = {self.rule.folder_of(file) for file in (*self.listed, *lay) if f"/{one.period:%H}/" in file.key}
            assert folders <= self.told.keys(), "an hour is complete without the marker of a folder"
        if self.rule.manifest:
            wrong = [folder for folder in folders if self.told[folder] != files_in(folder, self.listed)]
            assert wrong == [], "an hour is complete with another number of files than its manifest tells"
        return {*rows}

    def agree(self) -> None:
        """Nothing came into an hour since it was called complete, but what is marked by an operator's command."""
        for one in self.complete():
            for row in self.rows_of(one):
                if row["file_id"] in self.counted[one.key, one.revision]:
                    assert done(row) or is_marked(row), f"{row['key']} is {row['outcome']} in a complete hour"
                else:
                    assert row["outcome"] in self.left_out, f"{row['key']} came into a complete hour"

    def attempt(self, dies_after: int | None = None) -> None:
        if self.looks and self.draw.random() < 0.4:
            self.lake.meanwhile = (self.draw.randint(0, 12), self.look)
        self.begun = True
        super().attempt(dies_after)
        self.lake.meanwhile, self.begun = None, False
        self.agree()
        if self.taken and not self.versioned and not self.ending and self.draw.random() < 0.5:
            self.delete(self.draw.choice(self.taken).key)
        if self.looks and self.draw.random() < 0.6:
            self.look(self.draw.choice((None, None, None, 1, 2, 3, 4)))
            self.agree()

    def while_somebody_looks(self) -> None:
        """A file is put, and a batch takes in what waits, or dies."""
        if self.begun or self.ending or self.draw.random() < 0.6:
            return
        mine = self.lake.effects, self.lake.dies_after
        self.lake.dies_after, self.looks = None, False
        self.said.append("while somebody looks:")
        self.put(self.draw.choice(self.keys))
        self.attempt(self.draw.choice((None, None, *range(1, 20))))
        self.looks = True
        self.lake.effects, self.lake.dies_after = mine

    def roll_back(self, key: str) -> None:
        """By the command, which takes back the hours of all files that lose or get rows."""
        self.lake.dies_after = None
        before = {row["file_id"]: dict(row) for row in self.ledger()}
        super().roll_back(key)
        changed = [row["file_id"] for row in self.ledger() if row != before[row["file_id"]]]
        self.patch.setattr(reopening, "periods_of", lambda lake: Periods(self.store))
        self.patch.setattr(reopening, "_in_force", lambda view, name: self.service)
        rows = SimpleNamespace(
            lake=PLACE, rows_with=lambda *asked: [r for r in self.ledger() if r["file_id"] in asked[-1]]
        )
        reopening.reopen(rows, changed)  # type: ignore[arg-type]
        self.agree()
        self.look()
        self.agree()

    def put(self, key: str) -> None:
        if self.draw.random() < 0.4:
            self.tells.pop(f"{key.rpartition('/')[0]}/", None)  # the producer begins the folder again
        super().put(key)
        if self.draw.random() < 0.6:
            self.mark_folder(key, wrong_by=self.draw.choice((0, 0, 1)))
        self.agree()

    def announce_again(self, key: str) -> None:
        super().announce_again(key)
        self.look(self.draw.choice((None, 1, 2)))
        self.agree()

    def begun_hours(self) -> set[int]:
        return {10, 11}

    def mark_folder(self, key: str, wrong_by: int = 0) -> None:
        folder = f"{key.rpartition('/')[0]}/"
        self.markers.add(LandedFile("landing", f"{folder}_DONE", 0, "m", event_time=AT))
        self.tells[folder] = files_in(folder, self.lying()) + wrong_by

    def check(self) -> None:
        """In the end, whatever is done is complete."""
        super().check()
        for key in self.keys:
            self.mark_folder(key)
        self.look()
        self.agree()
        complete = {one.period.hour for one in self.complete()}
        for hour in self.begun_hours():
            assert (hour in complete) == all(map(done, rows_in(self.ledger(), hour))), hour


class HoursThatForget(Hours, Deletions):
    """A service that forgets what is deleted."""

    left_out = (*LEFT_OUT, "deleted", "ignored")

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.gone_at: dict[str, int] = {}
        """When an object of each key went last, by whomever."""
        self.loaded: dict[tuple[Key, int], set[str]] = {}

    def lying(self) -> list[LandedFile]:
        files = [put.file for one, put in self.model.puts.items() if one not in self.purged]
        if not self.versioned:
            files = [put.file for put in self.model.newest.values()]
        return [file for file in files if self.written[file.file_id] > self.gone_at.get(file.key, 0)]

    def announce_deletion(self, key: str) -> LandedFile:
        notice = super().announce_deletion(key)
        self.gone_at[key] = self.versions.total()
        return notice

    def delete(self, key: str) -> None:
        self.unlink(key)

    def all_are_in(self, one: FeedPeriod) -> set[str]:
        self.loaded[one.key, one.revision] = loaded_in(self.read, one)
        return super().all_are_in(one)

    def begun_hours(self) -> set[int]:
        """Files that are deleted before a batch reads them begin no hour, and only their marker's own notice would."""
        return {row.period.hour for row in Periods(self.store).rows().values()}

    def agree(self) -> None:
        """No file has left an hour since it was called complete."""
        super().agree()
        for one in self.complete():
            assert self.loaded[one.key, one.revision] == loaded_in(self.ledger(), one), "a complete hour lost a file"


def files_in(folder: str, files: Iterable[LandedFile]) -> int:
    return len({file.key for file in files if file.key.startswith(folder)})


def loaded_in(ledger: Iterable[dict[str, Any]], one: FeedPeriod) -> set[str]:
    return {row["file_id"] for row in rows_in(ledger, one.period.hour) if row["outcome"] == "loaded"}


def rows_in(ledger: Iterable[dict[str, Any]], hour: int) -> list[dict[str, Any]]:
    return [row for row in ledger if f"/{hour}/" in row["key"]]


def is_marked(row: dict[str, Any]) -> bool:
    """By an operator's command: its rows stand, and the next batch that has the file takes its hour back."""
    return row["reason"] != ROLLED_BACK and (row["outcome"] in (REPLAY, FORGET) or row["reason"] == WANTED_AGAIN)


def done(row: dict[str, Any]) -> bool:
    return is_final(row["outcome"], row["reason"]) and row["outcome"] != "unreadable"


def played(kind: type[Hours], seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = kind(seed, patch)
        try:
            play.play()
        except BaseException as wrong:
            open_ones = [f"{row.period:%H}: {row.why}" for row in Periods(play.store).rows().values() if row.why]
            wrong.add_note(f"history {seed}:\n" + "\n".join([*play.said, *open_ones]))
            raise


@pytest.mark.parametrize("kind", [Hours, HoursThatForget])
def test_whenever_an_hour_is_called_complete_every_file_of_it_is_in(kind: type[Hours]) -> None:
    alone = os.environ.get("FOREBAY_COMPLETE_HISTORY")
    for seed in [int(alone)] if alone else range(int(os.environ.get("FOREBAY_COMPLETE_HISTORIES", "30"))):
        played(kind, seed)


@pytest.mark.parametrize("at", range(8))
@pytest.mark.parametrize("dies_after", [None, *range(1, 8)])
def test_an_hour_is_not_complete_while_a_file_of_it_waits_that_got_its_bytes_again(
    at: int, dies_after: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody looks before each effect of the batch, and it dies after each. A paused table has rows of the first bytes."""
    play = Hours(0, monkeypatch)
    play.dedupe, play.versioned, play.operator_acts, play.looks, play.begun = True, False, False, False, True
    play.rolls_back, play.beside = False, None
    declared = f'envelope.complete = {{ folder = "{FOLDER}", quiet_minutes = 5 }}\n'
    key = play.keys[-1]
    for number, paused in (("1", ()), ("2", ("alpha",))):
        play.put(key)
        file = play.waiting[-1]
        play.lake.answers[file.file_id] = play.contents[file.file_id] = [Record(name, number) for name in TABLES]
        play.service = service(True, declared).with_paused(paused)
        Play.attempt(play)
    play.look()
    assert [one.period.hour for one in play.complete()] == [11]
    first = next(iter(play.model.puts.values()))
    play.announce(
        replace(first, file=replace(first.file, sequencer=f"{99:016X}", event_time=AT + timedelta(minutes=1)))
    )
    play.lake.answers[first.file.file_id] = play.contents[first.file.file_id]
    play.lake.meanwhile = (at, play.look)
    for dies in (dies_after, None):
        Play.attempt(play, dies)
        play.lake.meanwhile = None
    play.look()
    assert play.complete() == []
    play.service = play.service.with_paused(())
    play.start_again()
    play.announce_what_ended_as(())
    play.look()
    assert [(one.period.hour, one.rows) for one in play.complete()] == [(11, 2)]
