"""Thousands of histories of the batch's protocol, on paper: overwritten by each rule, deduplicated, with tables that fail,
drivers that die after any effect, files that are replayed, forgotten and brought back, and new checkpoints. Every record stands
once, and the ledger says where.

FOREBAY_PAPER_HISTORIES=100000 plays so many, with half a second for each. A failing one is named by its number, and
FOREBAY_PAPER_HISTORY plays it alone.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count, product
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from forebay.batch.attempt.turns import Turns
from forebay.batch.one_pass.outcome import IN_VAIN_AT_MOST, ReadAgain
from forebay.batch.plan import Plan
from forebay.batch.reasons import OF_WHOLE_TABLES
from forebay.batch.retrying.plan import Choice
from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from forebay.errors import Halt
from forebay.lake.layout import IDS, LEDGER, PARKED, QUARANTINE
from forebay.landed_file import LandedFile
from forebay.ledger.entry import FORGET, FORGOTTEN, NOT_FINAL, PUT_AGAIN, REPLAY, SKIPPED_BY_OPERATOR, WANTED_AGAIN
from tests.batch import paper
from tests.batch.model import Model, Put
from tests.batch.paper import (
    FIRST,
    Lake,
    PaperPass,
    Record,
    lay_out,
    remove_leftovers_in,
    retry_in,
    roll_back_in,
    table_of,
)
from tests.batch.world import Died

AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
KEYS = ("add/a", "add/b", "new/a", "new/b")
TABLES = ("alpha", "beta")
OTHER = "t"
HELD = {QUARANTINE: "quarantined", PARKED: "parked"}


def service(dedupe: bool, more: str = "", name: str = FIRST) -> Service:
    again = 'dedupe = { by = ["event_id"], days = 3 }' if dedupe else ""
    columns = 'columns = [{ name = "event_id" }]'
    text = f'name = "{name}"\noverwritten_below = {{ "new/" = "replace" }}\n{more}'
    text += f'[[tables]]\nname = "{{game}}"\n{columns}\n{again}'
    return parse_service({"service.toml": text})


class Beside:
    """A second service of the same lake. It takes in the same objects, from a queue of its own, into tables of its own."""

    def __init__(self, play: Play) -> None:
        self.play, self.model, self.service = play, Model(), service(False, name=OTHER)
        self.waiting: list[LandedFile] = []
        self.taken: list[LandedFile] = []
        self.batch = 0

    def put(self, put: Put) -> None:
        tables = {table_of(OTHER, game): rows for game, rows in put.tables.items()}
        self.model.put(replace(put, file=replace(put.file, service=OTHER), tables=tables))
        self.waiting.append(put.file)

    def attempt(self, dies_after: int | None = None) -> None:
        if not self.taken:
            self.taken, self.waiting = self.waiting, []
        lake = self.play.lake
        lake.dies_after, lake.failing, failing = dies_after, set(), lake.failing
        try:
            lay_out(self.play.patch, lake, self.service, "g0").load(self.taken, self.batch)
        except Died:
            self.play.said.append(f"the other service died after {dies_after}")
        except Halt as halted:
            self.play.said.append(f"the other service halted: {halted}")
            assert not self.play.ending, "a batch is halted, although all is mended"
        else:
            self.taken, self.batch = [], self.batch + 1
        finally:
            lake.failing = failing

    def end(self) -> None:
        for _ in range(3):
            self.attempt()
        ended = {row["file_id"] for row in self.play.lake.rows(LEDGER) if row["outcome"] in NOT_FINAL}
        self.waiting = [replace(put.file, service="") for one, put in self.model.puts.items() if one in ended]
        self.attempt()

    def check(self) -> None:
        mine = [row for row in self.play.lake.rows(LEDGER) if row["service"] == OTHER]
        assert self.model.wrong(mine) == []


class Play:
    """The bucket, the queue and the drivers of one history."""

    operator_acts = True

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        self.draw, self.patch, self.lake, self.model = Random(seed), patch, Lake(), Model()
        self.dedupe = self.draw.random() < 0.5
        self.tables_fail = self.draw.random() < 0.3
        self.rolls_back = not self.tables_fail and self.draw.random() < 0.25
        self.versioned = self.draw.random() < 0.3
        self.expired: set[str] = set()
        self.skipping: set[str] = set()
        self.keys = KEYS
        self.service = service(self.dedupe)
        self.contents: dict[str, list[Record]] = {}
        self.versions: Counter[str] = Counter()
        self.ticks = count()
        self.batch, self.generation = 0, "g0"
        self.taken: list[LandedFile] = []
        self.waiting: list[LandedFile] = []
        self.said: list[str] = []
        self.ending = self.in_batch = False
        self.beside = Beside(self) if not self.versioned and self.draw.random() < 0.3 else None

    def play(self) -> None:
        for key in self.keys:
            self.put(key)
        deeds = {self.put: 4, self.delete: 1, self.withhold: 3, self.mend: 3, self.announce_again: 2}
        deeds |= {self.replay: 3, self.forget: 1, self.bring_back: 1}
        if self.draw.random() < 0.3:
            deeds |= {self.forget: 12, self.bring_back: 12}
        deeds |= {self.fail: 5, self.pause: 3, self.retry: 4} if self.tables_fail else {self.put_back: 2}
        deeds |= self.more_deeds()
        if self.rolls_back:
            deeds |= {self.roll_back: 12, self.put: 8}
        if self.versioned:
            left_out = (self.forget, self.bring_back, self.delete)
            deeds = {deed: often for deed, often in deeds.items() if deed not in left_out}
            deeds |= {self.put_back: 6, self.expire: 3}
        self.do(deeds, 14)

    def do(self, deeds: dict[Callable[[str], None], int], most: int) -> None:
        """Some of these deeds, as often as their numbers say, between batches."""
        for _ in range(self.draw.randint(3, most)):
            if self.beside and self.draw.random() < 0.3:
                self.beside.attempt(self.draw.choice((None, *range(18))))
            elif self.draw.random() < 0.45:
                self.attempt(self.draw.choice((None, *range(24))))
            elif self.draw.random() < 0.1:
                self.new_checkpoint()
            else:
                deed = self.draw.choices(list(deeds), list(deeds.values()))[0]
                key = self.draw.choice(self.keys)
                self.said.append(f"{deed.__name__} {key}")
                deed(key)
        self.end()
        self.check()

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        return {}

    def put(self, key: str) -> None:
        """Files may hold the same records; but what a replaced version held, only later versions of its key do."""
        number = self.versions[key] = self.versions[key] + 1
        at = self.now()
        version = f"v{number}" if self.versioned else None
        file = LandedFile("landing", key, 1, f"{key}-{number}", version, f"{self.versions.total():016X}", at)
        ids = self.draw.sample(range(4), self.draw.randint(1, 4))
        shared = "add" if key.startswith("add/") else key
        records = [Record(self.draw.choice(TABLES), f"{shared} {n}") for n in ids]
        records += [Record((None, *TABLES)[number % 3], "", broken=True), Record(None, "")]
        self.contents[file.file_id] = self.lake.answers[file.file_id] = records  # type: ignore[assignment]
        if self.versioned:
            self.lake.hashes[file.file_id] = file.etag
        elif before := self.model.newest.get(key):
            self.lake.answers[before.file.file_id] = "changed"
        tables = Counter(record.game for record in records if record.game and not record.broken)
        self.announce(Put(file, dict(tables), held=2, replaces=key.startswith("new/")))

    def now(self) -> datetime:
        return AT + timedelta(seconds=self.versions.total())

    def clock(self) -> datetime:
        """It never stands still: batches and retries are known by when they began."""
        return self.now() + timedelta(microseconds=next(self.ticks))

    def announce(self, put: Put) -> None:
        self.model.put(put)
        self.waiting.append(put.file)
        if self.versioned:  # S3 promises no order
            self.draw.shuffle(self.waiting)
        if self.beside:
            self.beside.put(put)

    def ledger(self) -> list[dict[str, Any]]:
        """The first service's rows."""
        return [row for row in self.lake.rows(LEDGER) if row["service"] == FIRST]

    def put_back(self, key: str) -> None:
        """The bytes that an earlier version had. Without versions of the bucket's own, it is the same file again."""
        earlier = [put for put in self.model.puts.values() if put.file.key == key]
        put, newest = self.draw.choice(earlier), self.model.newest.get(key)
        if newest is None or put.file.file_id == newest.file.file_id:
            return
        self.versions[key] += 1
        at = self.now()
        if self.versioned:
            self.put_same_bytes(put, at)
            return
        file = replace(put.file, sequencer=f"{self.versions.total():016X}", event_time=at)
        self.lake.answers[newest.file.file_id] = "changed"
        self.lake.answers[file.file_id] = self.contents[file.file_id]
        self.announce(replace(put, file=file))

    def put_same_bytes(self, put: Put, at: datetime) -> None:
        """As a version of its own, which may have another etag."""
        number = f"v{self.versions[put.file.key]}"
        etag = put.file.etag if self.draw.random() < 0.5 else f"{put.file.key}-{number}"
        sequencer = f"{self.versions.total():016X}"
        file = replace(put.file, version_id=number, etag=etag, sequencer=sequencer, event_time=at)
        self.contents[file.file_id] = self.contents[put.file.file_id]
        self.lake.answers[file.file_id] = self.contents[file.file_id]  # type: ignore[assignment]
        self.lake.hashes[file.file_id] = self.lake.hashes[put.file.file_id]
        self.announce(replace(put, file=file))

    def expire(self, key: str) -> None:
        """A lifecycle rule deletes versions that are not the newest one."""
        newest = self.model.newest[key].file.file_id
        older = [one for one, put in self.model.puts.items() if put.file.key == key and one != newest]
        if older:
            self.expired.add(one := self.draw.choice(older))
            self.lake.answers[one] = "missing"

    def delete(self, key: str) -> None:
        if key in self.model.newest:
            self.lake.answers[self.model.newest[key].file.file_id] = "missing"
            self.model.delete(key)
            if self.beside:
                self.beside.model.delete(key)

    def withhold(self, key: str) -> None:
        if key in self.model.newest:
            self.lake.answers[self.model.newest[key].file.file_id] = self.draw.choice(("denied", "unavailable"))

    def mend(self, key: str) -> None:
        if put := self.model.newest.get(key):
            self.lake.answers[put.file.file_id] = self.contents[put.file.file_id]

    def announce_again(self, key: str) -> None:
        self.waiting.append(self.draw.choice([put.file for put in self.model.puts.values() if put.file.key == key]))

    def replay(self, key: str) -> None:
        """As `forebay replay` does: the mark in the ledger, then the announcement."""
        loaded = [row for row in self.ledger() if row["key"] == key and row["outcome"] == "loaded"]
        if loaded:
            row = self.draw.choice(loaded)
            row["outcome"] = "replay"
            self.waiting.append(self.model.puts[row["file_id"]].file)

    def forget(self, key: str) -> None:
        """As `forebay files forget` does. A record whose copy in another file was a duplicate is gone with it."""
        may = ("loaded", "replay") if key.startswith("new/") or not self.dedupe else ()
        self.mark(key, may, {"outcome": FORGET})

    def bring_back(self, key: str) -> None:
        """As `forebay files retry --forgotten` does."""
        gone = [row["key"] for row in self.ledger() if row["outcome"] in (FORGET, FORGOTTEN)]
        key = self.draw.choice(gone or [key])
        if not self.mark(key, (FORGET,), {"outcome": REPLAY}):
            self.mark(key, (FORGOTTEN,), {"reason": WANTED_AGAIN})

    def mark(self, key: str, outcomes: Sequence[str], says: dict[str, str]) -> bool:
        """A mark may be lost while a batch goes by an earlier one, or replaces the file. An operator is told to repeat it."""
        rows = [row for row in self.ledger() if row["key"] == key and row["outcome"] in outcomes]
        rows = [row for row in rows if not (self.is_planned(row) or self.is_leaving(row, says))]
        if not rows:
            return False
        row = self.draw.choice(rows)
        self.said.append(f"{row['file_id'][:6]} of {key}, {row['outcome']}, is now {says}")
        row.update(says)
        if says.get("outcome") == FORGET:
            self.model.forgotten.add(row["file_id"])
        else:
            self.model.forgotten.discard(row["file_id"])
        self.waiting.append(self.model.puts[row["file_id"]].file)
        return True

    def is_leaving(self, row: dict[str, Any], says: dict[str, str]) -> bool:
        """Half forgotten for a later version: an operator is told to bring it back once all of it is."""
        others = (
            one for one in self.ledger() if one["key"] == row["key"] and one["outcome"] in ("loaded", "empty", REPLAY)
        )
        later = any(one["committed_at"] > row["committed_at"] for one in others if one is not row)
        held = row["outcome"] == FORGET and row["reason"] in OF_WHOLE_TABLES and not row["quarantined"]
        return held and later and says.get("outcome") == REPLAY

    def is_planned(self, row: dict[str, Any]) -> bool:
        plans = (Plan.decode(content) for name, content in self.lake.objects.items() if f"/plans/{FIRST}/" in name)
        return any(file.key == row["key"] for plan in plans for file in plan.files)

    def pause(self, key: str) -> None:
        """Or resume; what is held meanwhile is for a retry."""
        self.service = self.service.with_paused(() if self.service.paused else [self.draw.choice(TABLES)])

    def fail(self, key: str) -> None:
        self.lake.failing = {self.draw.choice(TABLES)} if not self.lake.failing else set()
        self.lake.fails_early = self.draw.random() < 0.5

    def roll_back(self, key: str) -> None:
        """A table, or both. What lost rows is read again."""
        there = [name for name in TABLES if name in self.lake.tables]
        if there:
            roll_back_in(
                self.patch,
                self.lake,
                self.draw.sample(there, self.draw.randint(1, len(there))),
                self.draw.randint(1, 3),
            )
            if self.dedupe and not any("plan" in name for name in self.lake.objects):
                self.every_row_is_known()

    def every_row_is_known(self) -> None:
        """Its id is among those of its file: another copy of the record is a duplicate. Of no record whose file was
        superseded: its row leaves once its table can be written, and a copy must not be left out for it."""
        ids = {(row["file_id"], row["id"]) for row in self.lake.rows(IDS)}
        rows = {(row["_file_id"], (name, row["id"])) for name in TABLES for row in self.lake.rows(name)}
        leaving = {row["file_id"] for row in self.ledger() if row["outcome"] == "superseded"}
        unknown = {one for one in rows - ids if one[0] not in leaving}
        assert {one for one in unknown if (one[1][0], one[0]) not in self.lake.without_ids} == set()

    def retry(self, key: str) -> None:
        """By an operator. Some of them drop what they choose; some of their processes die."""
        held: Any = self.draw.choice(("quarantine", "parked"))
        gives_up = not self.dedupe and self.draw.random() < 0.2  # with a record that is given up its copies are gone
        choice, dies_after = Choice(held, give_up=gives_up), self.draw.choice((None, None, *range(9)))
        if not self.ending and not self.in_batch and self.draw.random() < 0.3:
            at, dies_too = self.draw.randint(0, 9), self.draw.choice((None, *range(12)))
            self.said.append(f"before effect {at} of a retry comes a batch")
            self.lake.meanwhile = (at, lambda: self.attempt(dies_too))
        self.retries(choice, dies_after)
        self.lake.meanwhile = None

    def retries(self, choice: Choice, dies_after: int | None = None) -> None:
        """It halts where a batch that may load copies of its records is unfinished, and the next one finishes it."""
        self.lake.dies_after = dies_after
        try:
            retry_in(self.patch, self.lake, self.service, self.clock()).run(choice)
        except Died:
            self.said.append(f"a retry died after {dies_after}")
        except Halt as halted:
            self.said.append(f"a retry halted: {halted}")
            assert not self.ending, "a retry is halted, although all is mended"

    def driver(self, dies_after: int | None = None) -> Any:
        self.lake.dies_after = dies_after
        made = lay_out(self.patch, self.lake, self.service, self.generation, clock=self.clock)
        made.skips = SimpleNamespace(among=lambda files: self.skipping & {file.file_id for file in files})  # type: ignore[assignment]
        return made

    def attempt(self, dies_after: int | None = None) -> None:
        """Spark replays a batch before it asks for more."""
        if not self.taken:
            late = self.draw.randint(0, len(self.waiting)) if self.versioned and not self.ending else 0
            self.taken, self.waiting = self.waiting[late:], self.waiting[:late]
        if not self.taken:
            return
        self.said.append(
            f"attempt {self.generation} {self.batch} dies after {dies_after}: {[f.etag for f in self.taken]}"
        )
        alone = self.ending or self.rolls_back or self.versioned or not self.operator_acts
        if not alone and self.draw.random() < 0.3:
            at, key = self.draw.randint(0, 8), self.draw.choice(self.keys)
            deed = self.draw.choice((self.retry, self.forget) if self.tables_fail else (self.forget, self.bring_back))
            self.said.append(f"before effect {at} somebody does {deed.__name__} {key}")
            self.lake.meanwhile = (at, lambda: deed(key))
        if self.rolls_back and self.draw.random() < 0.5:
            self.said.append(f"before effect {(at := self.draw.randint(0, 12))} the tables are compacted")
            self.lake.meanwhile = (at, self.compact)
        self.in_batch = True
        try:
            self.driver(dies_after).load(self.taken, self.batch)
        except Died:
            self.said.append("died")
        except Halt as halted:
            self.said.append(f"halted: {halted}")
            assert not self.ending, "a batch is halted, although all is mended"
        else:
            self.taken, self.batch = [], self.batch + 1
        finally:
            self.lake.meanwhile, self.in_batch = None, False

    def compact(self) -> None:
        """Commits between the rows and the ids of a batch, which a rollback may go by."""
        for name in (*TABLES, IDS):
            if (table := self.lake.tables.get(name)) is not None:
                table.change(self.draw.sample(table.rows, len(table.rows)))

    def new_checkpoint(self) -> None:
        """It counts from 0 again, and the queue still has what was not committed."""
        self.said.append("new checkpoint")
        before, self.generation = self.generation, f"g{int(self.generation[1:]) + 1}"
        try:
            self.driver(self.draw.choice((None, None, 1, 2, 3, 5))).finish_earlier()
        except (Died, Halt) as stopped:
            self.said.append(f"stopped: {stopped}")
            self.generation = before
            return
        self.waiting, self.taken, self.batch = [*self.taken, *self.waiting], [], 0

    def end(self) -> None:
        self.ending = True
        self.lake.failing, self.service = set(), self.service.with_paused(())
        for key in self.keys:
            self.mend(key)
        if self.versioned:
            self.lake.answers |= {one: records for one, records in self.contents.items() if one not in self.expired}
        self.start_again()  # what a dead retry began is finished: until then, files that it concerns are withheld
        for _ in range(3):
            self.attempt()
        assert self.taken + self.waiting == [], "a batch does not end, although all is mended"
        self.announce_what_ended_as((*NOT_FINAL, FORGOTTEN))
        # A replay that came beside a later version, which could not be read, waits for its next turn. So does a duplicate of
        # one that is gone.
        for _ in range(4):
            self.announce_what_ended_as((REPLAY, FORGET, FORGOTTEN))
        self.start_again()
        if self.beside:
            self.beside.end()

    def start_again(self) -> None:
        """What a job does at its start: batches end, whatever failed or was paused lands, and what was superseded leaves."""
        self.driver().finish_earlier()
        for reason in ("table-failed", "paused"):
            self.retries(Choice("quarantine", reason=reason))
        remove_leftovers_in(self.patch, self.lake, self.service, AT)

    def announce_what_ended_as(self, outcomes: Sequence[str]) -> None:
        again = (PUT_AGAIN, SKIPPED_BY_OPERATOR)
        found = {row["file_id"] for row in self.ledger() if row["outcome"] in outcomes or row["reason"] in again}
        self.waiting = [put.file for one, put in self.model.puts.items() if one in found]
        self.attempt()

    def check(self) -> None:
        ledger = self.lake.rows(LEDGER)
        assert len({row["file_id"] for row in ledger}) == len(ledger), "two rows of one file in the ledger"
        assert [name for name in self.lake.objects if "/plans/" in name] == []
        others = [table_of(OTHER, name) for name in TABLES] if self.beside else []
        told: dict[str, Counter[str]] = {name: Counter() for name in (*TABLES, *others, *HELD)}
        for row in ledger:
            for name, rows in {**row["tables"], **{name: row[column] for name, column in HELD.items()}}.items():
                told[name][row["file_id"]] += rows
        there = {name: Counter(row["_file_id"] for row in self.lake.rows(name)) for name in told}
        self.sums_must_hold({name: +counts for name, counts in told.items()}, there)
        records = Counter((row["_file_id"], row["byte_offset"]) for name in told for row in self.lake.rows(name))
        self.none_is_twice(records)
        if self.beside:
            self.beside.check()
        ledger = self.ledger()
        self.what_should_stand(ledger)
        assert self.waiting_for_tables() == []
        assert [row for row in ledger if row["outcome"] == "superseded" and row["written"]] == []
        if self.dedupe and not self.versioned:
            self.every_id_stands_once()

    def waiting_for_tables(self) -> list[dict[str, Any]]:
        return [row for row in self.lake.rows(QUARANTINE) if row["reason"] in OF_WHOLE_TABLES]

    def none_is_twice(self, records: Counter[tuple[str, int]]) -> None:
        """Records by their file and their place there."""
        assert [one for one, times in records.items() if times > 1] == []

    def sums_must_hold(self, told: dict[str, Counter[str]], there: dict[str, Counter[str]]) -> None:
        """Rows of each file in each table, by the ledger and by the tables."""
        assert told == there

    def what_should_stand(self, ledger: Sequence[dict[str, Any]]) -> None:
        if self.versioned:
            self.all_bytes_stand_once(ledger)
        elif self.rolls_back:
            self.newest_stand(ledger)
        else:
            assert self.model.wrong(ledger, by_table=not self.tables_fail and not self.dedupe) == []

    def all_bytes_stand_once(self, ledger: Sequence[dict[str, Any]]) -> None:
        """However many versions have them. Of keys that are replaced only those of the newest version stand."""
        rows = {row["file_id"]: row for row in ledger}
        assert rows.keys() == self.model.puts.keys()
        stand = Counter(
            (rows[one]["key"], self.lake.hashes[one])
            for one in rows
            if rows[one]["outcome"] == "loaded" and rows[one]["records"] != rows[one]["dropped"]
        )
        puts = {one: put for one, put in self.model.puts.items() if not put.replaces}
        puts |= {put.file.file_id: put for put in self.model.newest.values() if put.replaces}
        may = {(put.file.key, self.lake.hashes[one]) for one, put in puts.items()}
        must = {(put.file.key, self.lake.hashes[one]) for one, put in puts.items() if one not in self.expired}
        assert must <= stand.keys() <= may
        assert set(stand.values()) <= {1}
        for one, put in self.model.puts.items():
            if rows[one]["outcome"] == "loaded":
                assert rows[one]["records"] == put.records, put.file.etag

    def newest_stand(self, ledger: Sequence[dict[str, Any]]) -> None:
        """Of older ones, which were overwritten since, a rollback may have taken rows away that nobody can read again."""
        rows = {row["file_id"]: row for row in ledger}
        for row in (rows[one] for one in self.model.forgotten):
            assert (row["outcome"], row["written"]) == (FORGOTTEN, 0), f"{row['etag']} was to be forgotten"
        for put in (put for put in self.model.newest.values() if put.file.file_id not in self.model.forgotten):
            row = rows[put.file.file_id]
            assert (row["outcome"], row["records"]) == ("loaded", put.records), put.file.etag
            lacks_some = put.file.file_id in self.lake.given_up
            assert self.dedupe or lacks_some or row["tables"] == put.tables, put.file.etag
        for put in self.model.puts.values():
            newest = self.model.newest.get(put.file.key)
            if newest is not None and newest.file.file_id in self.model.forgotten:
                continue  # an earlier version that a rollback brought back stands, for nothing takes its place again
            if put.replaces and newest is not None and newest.file.file_id != put.file.file_id:
                assert rows[put.file.file_id]["written"] == 0, f"{put.file.etag} stands beside {newest.file.etag}"

    def every_id_stands_once(self) -> None:
        for name in TABLES:
            ids = Counter(row["id"] for row in self.lake.rows(name))
            assert [one for one, times in ids.items() if times > 1] == []
        stand = {(name, row["id"]) for name in TABLES for row in self.lake.rows(name)}
        for put in self.model.newest.values():
            if put.file.file_id in self.model.forgotten:
                continue
            wanted = {
                (record.game, record.id)
                for record in self.contents[put.file.file_id]
                if record.game and not record.broken
            }
            assert wanted <= stand, f"{put.file.etag} lacks {wanted - stand}"


HISTORIES = int(os.environ.get("FOREBAY_PAPER_HISTORIES", "75"))
in_time = pytest.mark.timeout(max(600, HISTORIES // 2))


@contextmanager
def a_history(kind: type[Play], seed: int) -> Iterator[Play]:
    """It has a clock of its own, so it is the same one when it is played alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper, "CLOCK", count())
        yield kind(seed, patch)


def play_all(kind: type[Play], histories: int = HISTORIES) -> None:
    alone = os.environ.get("FOREBAY_PAPER_HISTORY")
    for seed in [int(alone)] if alone else range(histories):
        with a_history(kind, seed) as play:
            try:
                play.play()
            except BaseException as wrong:
                wrong.add_note(f"history {seed}:\n" + "\n".join(play.said))
                raise


@in_time
def test_thousands_of_histories_end_with_every_record_once() -> None:
    play_all(Play)


def plain_play(seed: int, patch: pytest.MonkeyPatch, *, dedupe: bool) -> Play:
    """One service, whose tables do not fail, and a bucket without versions."""
    play = Play(seed, patch)
    play.dedupe, play.service = dedupe, service(dedupe)
    play.tables_fail = play.rolls_back = play.versioned = False
    play.beside = None
    return play


def test_a_rollback_to_any_version_knows_its_rows_wherever_a_compaction_was_committed() -> None:
    """Before each effect of a batch whose file was replaced since."""
    for at, back, table in product(range(12), range(2, 6), TABLES):
        with pytest.MonkeyPatch.context() as patch:
            play = plain_play(0, patch, dedupe=True)
            play.operator_acts = False
            for number in range(3):
                play.put("new/a")
                play.put("add/a")
                play.lake.meanwhile = (at, play.compact) if number == 1 else None
                play.attempt()
            if table in play.lake.tables:
                roll_back_in(patch, play.lake, [table], back)
            play.every_row_is_known()


@pytest.mark.parametrize("dies_after", range(1, 7))
def test_an_operator_who_drops_records_drops_none_that_come_after_the_command_died(dies_after: int) -> None:
    """Nothing is left of a command that died before it chose its records. Another one is finished by the next start."""
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        play.operator_acts, play.service = False, play.service.with_paused(["alpha"])
        for key in ("add/a", "add/b"):
            play.put(key)
            play.lake.answers[play.waiting[-1].file_id] = [Record("alpha", key)]
            play.attempt()
            if key == "add/a":
                play.retries(Choice("quarantine", give_up=True), dies_after)
        play.service = play.service.with_paused(())
        play.start_again()
        rows = [row["id"] for row in play.lake.rows("alpha")]
        assert rows == (["add/a", "add/b"] if dies_after == 1 else ["add/b"])


@pytest.mark.parametrize("how", ["fails at its commit", "fails early", "is paused"])
def test_a_replayed_file_keeps_its_refused_records_where_its_table_cannot_be_written(how: str) -> None:
    """Its rows stay in the table. Its earlier refused records leave the quarantine, so those of this reading come."""
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        play.put("add/a")
        file_id = play.waiting[0].file_id
        play.lake.answers[file_id] = [Record("alpha", "1"), Record("alpha", "2", broken=True), Record("beta", "1")]
        play.operator_acts = False
        for _ in range(2):
            play.attempt()
            (row,) = play.ledger()
            assert (row["records"], row["tables"], row["quarantined"]) == (3, {"alpha": 1, "beta": 1}, 1)
            assert [kept["id"] for kept in play.lake.rows(QUARANTINE)] == ["2"]
            play.replay("add/a")
            if how == "is paused":
                play.service = play.service.with_paused(["alpha"])
            else:
                play.lake.failing, play.lake.fails_early = {"alpha"}, how == "fails early"
        assert play.batch == 2


def two_files(play: Play, of_first: list[Record], of_second: list[Record]) -> tuple[str, str]:
    """Their ids: `add/a` and `add/b` wait for a batch."""
    play.put("add/a")
    play.put("add/b")
    first, second = (file.file_id for file in play.waiting)
    play.lake.answers = {first: of_first, second: of_second}
    return first, second


def test_records_of_a_version_that_leaves_are_no_duplicates_beside_a_later_one_that_nobody_can_read() -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=True)
        play.put("new/a")
        play.lake.answers[play.waiting[0].file_id] = [Record("alpha", "1")]
        play.attempt()
        play.put("new/a")
        play.put("new/a")
        second, third = (file.file_id for file in play.waiting)
        play.lake.answers |= {second: [Record("alpha", "1"), Record("alpha", "2")], third: "missing"}
        play.attempt()
        assert [(row["id"], row["_file_id"]) for row in play.lake.rows("alpha")] == [("1", second), ("2", second)]


@pytest.mark.parametrize("dies_after", range(2, 9))
def test_a_copy_that_was_left_out_is_not_known_where_only_its_first_copy_stands(dies_after: int) -> None:
    """The first copy's file cannot be read when the batch is replayed: then no copy of its record was read before."""
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=True)
        first, _ = two_files(play, [Record("beta", "1")], [Record("beta", "1"), Record("beta", "2")])
        play.attempt(dies_after)
        play.lake.answers[first] = "unavailable"
        play.attempt()
        play.lake.answers[first] = [Record("beta", "1")]
        play.replay("add/a")
        play.announce_again("add/a")
        play.attempt()
        assert sorted(row["id"] for row in play.lake.rows("beta")) == ["1", "2"]


def loaded_alone(play: Play) -> dict[str, Any]:
    """The ledger's row of the only file. Nothing of it is held, for what is held is watched anyway."""
    play.put("add/a")
    (put,) = play.model.puts.values()
    play.lake.answers[put.file.file_id] = [Record("alpha", "1"), Record("beta", "2")]
    play.attempt()
    (row,) = play.lake.rows(LEDGER)
    return row


MARKS = ((FORGET, REPLAY, "loaded"), (REPLAY, FORGET, FORGOTTEN))


@pytest.mark.parametrize(("before", "after", "ends"), MARKS)
@pytest.mark.parametrize("effect", range(6))
def test_an_operator_who_changes_his_mind_beside_a_batch_is_told_or_heeded(
    effect: int, before: str, after: str, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the plan of the batch is durable the later mark holds. After that the operator is told to repeat it."""
    play = plain_play(1, monkeypatch, dedupe=False)
    row = loaded_alone(play)
    row["outcome"] = before
    planned: list[bool] = []

    def somebody() -> None:
        planned.append(play.is_planned(row))
        row["outcome"] = after

    play.lake.meanwhile = (effect, somebody)
    play.driver().load([play.model.puts[row["file_id"]].file], 7)
    (now,) = play.lake.rows(LEDGER)
    as_begun = "loaded" if before == REPLAY else FORGOTTEN
    assert now["outcome"] in ([ends] if planned == [False] else [ends, as_begun])
    assert bool(play.lake.rows("alpha") + play.lake.rows("beta")) == (now["outcome"] == "loaded")


def test_a_batch_that_began_to_forget_goes_on_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    play = plain_play(1, monkeypatch, dedupe=False)
    row = loaded_alone(play)
    row["outcome"] = FORGET
    for dies_after in (2, None):
        try:
            play.driver(dies_after).load([play.model.puts[row["file_id"]].file], 7)
        except Died:
            play.lake.rows(LEDGER)[0]["outcome"] = REPLAY
    assert [row["outcome"] for row in play.lake.rows(LEDGER)] == [FORGOTTEN]
    assert play.lake.rows("alpha") + play.lake.rows("beta") == []


@pytest.mark.parametrize("dies_after", range(1, 9))
def test_a_replay_whose_file_goes_midway_loses_nothing(dies_after: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=True)
        first, _ = two_files(play, [Record("alpha", "1"), Record("beta", "2")], [Record("beta", "2")])
        play.attempt()
        play.replay("add/a")
        play.attempt(dies_after)
        play.lake.answers[first] = "missing"
        play.attempt()
        assert [row["id"] for name in TABLES for row in play.lake.rows(name)] == ["1", "2"]
        told = {row["file_id"]: row["tables"] for row in play.lake.rows(LEDGER)}
        assert told[first] == {"alpha": 1, "beta": 1}


@pytest.mark.parametrize("dies_after", range(1, 9))
def test_a_record_that_a_replay_was_to_leave_to_another_file_stands_once_where_the_replay_went_midway(
    dies_after: int,
) -> None:
    """Its file is gone when the batch is taken up again, so its rows stay."""
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=True)
        play.put("add/a")
        (first,) = (file.file_id for file in play.waiting)
        play.lake.answers = {first: [Record("beta", "1"), Record("beta", "3")]}
        play.attempt()
        play.put("add/b")
        (second,) = (file.file_id for file in play.waiting)
        play.lake.answers |= {second: [Record("alpha", "2"), Record("beta", "1")]}
        play.replay("add/a")
        play.attempt(dies_after)
        play.lake.answers[first] = "missing"
        play.attempt()
        assert sorted((name, row["id"]) for name in TABLES for row in play.lake.rows(name)) == [
            ("alpha", "2"),
            ("beta", "1"),
            ("beta", "3"),
        ]


@pytest.mark.parametrize("rolled_back", [True, False])
@pytest.mark.parametrize("key", ["add/a", "new/a"])
def test_a_replay_whose_object_is_gone_reads_a_duplicate_in_its_place(key: str, rolled_back: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        play.versioned = play.ending = True
        play.put("add/b")
        other = play.waiting[0].file_id
        play.lake.answers[other] = [Record("alpha", "0")]
        play.attempt()
        play.put(key)
        first = play.waiting[0].file_id
        play.lake.answers[first] = play.contents[first] = [Record("alpha", "1"), Record("beta", "2")]
        play.attempt()
        play.versions[key] += 1
        play.put_same_bytes(play.model.puts[first], AT)
        second = play.waiting[0].file_id
        play.attempt()
        if rolled_back:
            roll_back_in(patch, play.lake, ["alpha"], 1)
        else:
            play.replay(key)
        play.lake.answers[first] = "missing"
        for _ in range(2):
            play.announce_what_ended_as((REPLAY,))
        ended = {row["file_id"]: row["outcome"] for row in play.lake.rows(LEDGER)}
        assert ended == {other: "loaded", first: "superseded", second: "loaded"}
        rows = [(name, row["_file_id"]) for name in TABLES for row in play.lake.rows(name)]
        assert rows == [("alpha", other), ("alpha", second), ("beta", second)]


@pytest.mark.parametrize("effect", range(12))
def test_a_version_that_is_to_be_forgotten_while_a_batch_replaces_it_is_or_the_operator_is_told(effect: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        play.put("new/a")
        play.lake.answers[play.waiting[0].file_id] = [Record("alpha", "1")]
        play.attempt()
        play.put("new/a")
        play.lake.meanwhile = (effect, lambda: play.forget("new/a"))
        play.driver().load(play.waiting, 1)
        marked = bool(play.model.forgotten)
        outcomes = sorted(row["outcome"] for row in play.lake.rows(LEDGER))
        assert outcomes == ([FORGOTTEN, "loaded"] if marked else ["loaded", "superseded"])


def test_a_version_that_is_to_be_forgotten_stays_out_although_a_later_one_came_before_that_was_done() -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        play.put("new/a")
        play.attempt()
        play.put("new/a")
        play.forget("new/a")
        play.attempt()
        assert sorted(row["outcome"] for row in play.lake.rows(LEDGER)) == [FORGOTTEN, "loaded"]
        play.put_back("new/a")
        play.end()
        play.check()


@pytest.mark.parametrize("dies_after", range(1, 9))
def test_rows_that_made_room_for_a_version_that_is_gone_are_not_told_to_stand(dies_after: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        play.put("new/a")
        play.lake.answers[play.waiting[0].file_id] = [Record("alpha", "1"), Record("beta", "2")]
        play.attempt()
        play.put("new/a")
        play.put("add/a")
        newer, other = (file.file_id for file in play.waiting)
        play.lake.answers |= {newer: [Record("beta", "3")], other: [Record("alpha", "4")]}
        play.attempt(dies_after)
        play.lake.answers[newer] = "missing"
        play.attempt()
        told = Counter({row["file_id"]: row["written"] for row in play.lake.rows(LEDGER)})
        assert +told == Counter(row["_file_id"] for name in TABLES for row in play.lake.rows(name))


def test_a_record_of_a_file_that_is_forgotten_is_no_duplicate_where_its_table_fails_only_at_the_commit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other file that has it is read once more, for the quarantine, and brings the same rows as before."""
    play = plain_play(0, monkeypatch, dedupe=True)
    play.put("new/a")
    play.lake.answers[play.waiting[0].file_id] = [Record("alpha", "1")]
    play.attempt()
    play.forget("new/a")
    play.put("add/a")
    coming = play.waiting[-1].file_id
    play.lake.answers[coming] = [Record("alpha", "1"), Record("beta", "2")]
    play.lake.failing, play.lake.fails_early = {"alpha"}, False
    play.said.clear()
    play.attempt()
    assert [one for one in play.said if "halted" in one] == []
    held = [(row["file_id"], row["id"], row["reason"]) for row in play.lake.rows(QUARANTINE)]
    assert held == [(coming, "1", "table-failed")]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_rows_of_a_table_that_fails_at_its_commit_are_read_again_where_a_pass_over_them_cannot_be_used(
    times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    play, real = plain_play(0, monkeypatch, dedupe=False), PaperPass.of
    play.put("add/a")
    (coming,) = (file.file_id for file in play.waiting)
    play.lake.answers[coming] = [Record("alpha", "1"), Record("beta", "2")]
    play.lake.failing, play.lake.fails_early = {"alpha"}, False
    tried = count(1)

    def of(self: PaperPass, *given: Any, only_unwritten: bool = False, **more: Any) -> Any:
        if only_unwritten and next(tried) <= times:
            raise ReadAgain("said the test")
        self.in_vain[more["shared"]["batch"]] = IN_VAIN_AT_MOST
        return real(self, *given, **more, only_unwritten=only_unwritten)

    monkeypatch.setattr(PaperPass, "of", of)
    play.said.clear()
    play.attempt()
    halted = [one for one in play.said if "records cannot be quarantined" in one]
    assert len(halted) == (times == 3)
    play.attempt()
    assert [(row["file_id"], row["id"]) for row in play.lake.rows(QUARANTINE)] == [(coming, "1")]


def settled_plans(play: Play) -> list[Plan]:
    plans = (Plan.decode(content) for name, content in play.lake.objects.items() if "/plans/" in name)
    return [plan for plan in plans if plan.settled]


@pytest.mark.parametrize("answer", ["missing", "denied", "unavailable", "changed", "empty"])
@pytest.mark.parametrize("dedupe", [True, False])
def test_once_a_plan_is_settled_all_rows_come_whatever_becomes_of_the_objects(answer: Any, dedupe: bool) -> None:
    """The driver dies after each effect in turn, to the last one. The batch replaces a file, replays one, and adds one."""
    ends = Counter[bool]()
    for dies_after in count(1):
        with pytest.MonkeyPatch.context() as patch:
            play = plain_play(0, patch, dedupe=dedupe)
            for key in play.keys:
                play.put(key)
            play.attempt()
            play.put("new/a")
            play.put("add/a")
            play.replay("new/b")
            wanted = {file.file_id: play.lake.answers[file.file_id] for file in play.waiting}
            play.attempt(dies_after)
            if not play.taken:
                break
            settled = bool(settled_plans(play)) or any(row["batch"] == 1 for row in play.lake.rows(LEDGER))
            play.lake.answers |= {one: [] if answer == "empty" else answer for one in wanted}
            play.attempt()
            ends[settled] += 1
            rows = Counter(row["_file_id"] for name in (*TABLES, *HELD) for row in play.lake.rows(name))
            told = {row["file_id"]: row for row in play.lake.rows(LEDGER)}
            for file_id, records in wanted.items():
                row = told[file_id]
                counted = sum(row[name] for name in ("written", "quarantined", "parked"))
                assert (counted, row["records"] - row["dropped"]) == (rows[file_id], rows[file_id])
                assert not settled or (row["outcome"], row["records"]) == ("loaded", len(records))
            assert [name for name in play.lake.objects if "/plans/" in name] == []
    assert ends[True] > 3
    assert ends[False] > 3


def test_a_driver_that_was_paused_brings_no_withdrawn_plan_back() -> None:
    """Another driver took its place, deleted its data files, and is at work on the same batch."""
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        play.put("new/a")
        play.attempt()
        play.put("new/a")

        def another() -> None:
            play.lake.meanwhile = None
            play.driver().load(play.waiting, 1)

        looking = Turns.lost

        def lost(turns: Turns, *others: Any) -> bool:
            patch.setattr(Turns, "lost", looking)
            found = looking(turns, *others)
            another()
            return found

        patch.setattr(Turns, "lost", lost)
        with pytest.raises(Halt, match="two of them work on batch 1"):
            play.driver().load(play.waiting, 1)
        assert [name for name in play.lake.objects if "/plans/" in name] == []
        play.check()


@pytest.mark.parametrize("dedupe", [True, False])
@pytest.mark.parametrize("key", ["new/a", "add/a"])
def test_two_drivers_at_one_batch_leave_every_record_once(key: str, dedupe: bool) -> None:
    """Before each effect of the one, the other does the batch to its end, or dies on the way. The one may fail, but a driver
    after both of them ends the batch."""
    ended = Counter[str]()
    for effect, dies_after in product(range(16), (*range(1, 12, 2), None)):
        with pytest.MonkeyPatch.context() as patch:
            play = plain_play(3, patch, dedupe=dedupe)
            for one in ("new/a", "add/b"):
                play.put(one)
            play.attempt()
            for one in (key, "add/b"):
                play.put(one)
            files, play.waiting = play.waiting, []

            def another(play: Play = play, dies_after: int | None = dies_after, files: Any = files) -> None:
                play.lake.meanwhile = None
                with suppress(Died):
                    play.driver(dies_after).load(files, 1)
                    ended["another"] += 1
                play.lake.dies_after = None

            play.lake.meanwhile = (effect, another)
            try:
                play.driver().load(files, 1)
                ended["one"] += 1
            except (Halt, KeyError):  # the other one has deleted data files that replaced rows, once they had done that
                ended["failed"] += 1
            play.lake.meanwhile = None
            play.driver().load(files, 1)
            play.check()
    assert min(ended.values()) > 3


def test_files_that_no_log_names_are_gone_after_a_batch_that_replaced_rows() -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=True)
        play.put("new/a")
        play.attempt()
        before = {name for name in play.lake.objects if "part-" in name}
        places = [name.rpartition("/")[0] for name in before if IDS not in name]
        assert len({*places}) == len(places) > 2, "no row is written twice"
        play.put("new/a")
        play.attempt()
        assert {name for name in play.lake.objects if "part-" in name} == before


def test_a_plan_whose_data_files_somebody_deleted_says_so_and_goes_on_once_they_are_restored() -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        play.put("add/a")
        (file_id,) = (file.file_id for file in play.waiting)
        play.lake.answers[file_id] = [Record("alpha", "1"), Record("beta", "2")]
        play.attempt(4)
        (plan,) = settled_plans(play)
        gone = {name: told for name, told in play.lake.objects.items() if "beta/part-" in name}
        play.lake.objects = {name: told for name, told in play.lake.objects.items() if name not in gone}
        later = plan.began_at + timedelta(days=8)

        def driver() -> Any:
            play.lake.dies_after = None
            return lay_out(patch, play.lake, play.service, play.generation, clock=lambda: later)

        with pytest.raises(
            Halt,
            match=r"batch 0 .* lacks 1 data file, such as paper/beta/.* Restore the data files of .*/plans/s/g0-0.json.gz",
        ):
            driver().load(play.taken, 0)
        assert play.lake.rows(LEDGER) == []
        play.lake.objects |= gone
        driver().load(play.taken, 0)
        assert [(row["_file_id"], name) for name in TABLES for row in play.lake.rows(name)] == [
            (file_id, "alpha"),
            (file_id, "beta"),
        ]


def test_of_two_announcements_of_one_file_in_a_batch_the_later_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key got its first bytes back, and its first announcement, of when it could not be read, comes once more as well."""
    play = plain_play(0, monkeypatch, dedupe=False)
    play.put("new/a")
    (first,) = play.waiting
    play.lake.answers[first.file_id] = "changed"
    play.attempt()
    play.put("new/a")
    (second,) = play.waiting
    play.attempt()
    assert {row["etag"]: row["outcome"] for row in play.ledger()} == {first.etag: "missing", second.etag: "loaded"}
    back = replace(first, sequencer=f"{99:016X}", event_time=AT + timedelta(hours=1))
    play.lake.answers |= {first.file_id: play.contents[first.file_id], second.file_id: "changed"}
    for order in ([first, back], [back, first]):
        play.waiting = order
        play.attempt()
        assert {row["etag"]: row["outcome"] for row in play.ledger()} == {
            first.etag: "loaded",
            second.etag: "superseded",
        }


def test_rows_that_a_rollback_brings_to_a_file_that_is_to_be_read_again_make_room_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was forgotten, then wanted again, and could not be read."""
    play = plain_play(1, monkeypatch, dedupe=False)
    row = loaded_alone(play)
    put = play.model.puts[row["file_id"]]
    for changes, answer in (({"outcome": FORGET}, None), ({"reason": WANTED_AGAIN}, "unavailable")):
        play.ledger()[0].update(changes)
        if answer:
            play.lake.answers[put.file.file_id] = answer  # type: ignore[assignment]
        play.waiting = [put.file]
        play.attempt()
    assert [row["outcome"] for row in play.ledger()] == ["unavailable"]
    roll_back_in(monkeypatch, play.lake, [name for name in TABLES if name in play.lake.tables], 1)
    assert play.lake.rows("alpha") + play.lake.rows("beta")
    play.mend(put.file.key)
    play.waiting = [put.file]
    play.attempt()
    play.check()


@pytest.mark.parametrize("dies_after", range(1, 9))
def test_a_skipped_file_whose_notice_comes_again_in_a_batch_that_dies_keeps_its_row(dies_after: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        play = plain_play(0, patch, dedupe=False)
        play.put("add/a")
        play.skipping = {play.waiting[0].file_id}
        play.attempt()
        play.announce_again("add/a")
        play.put("add/b")
        play.attempt(dies_after)
        play.attempt()
        told = {row["key"]: (row["outcome"], row["reason"]) for row in play.ledger()}
        assert told == {"add/a": ("skipped", SKIPPED_BY_OPERATOR), "add/b": ("loaded", None)}


def stopped_behind_its_plan(play: Play) -> str:
    """A batch that died before its first commit. The name of its plan."""
    play.put("add/a")
    for dies_after in range(24):
        play.attempt(dies_after)
        plans = [name for name in play.lake.objects if f"/plans/{FIRST}/" in name]
        if plans and all(Plan.decode(play.lake.objects[name]).settled for name in plans):
            (plan,) = plans
            return plan
    raise AssertionError("no batch stopped there")


def test_files_that_another_tool_deleted_behind_a_plan_are_committed_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A VACUUM that retains nothing, of minutes ago."""
    play = plain_play(1, monkeypatch, dedupe=False)
    plan = Plan.decode(play.lake.objects[stopped_behind_its_plan(play)])
    (gone, *_) = [name for name in play.lake.objects if name.endswith(plan.staged.tables["alpha"].files[0].path)]
    del play.lake.objects[gone]
    play.said.clear()
    play.attempt()
    assert "lacks 1 data file, such as" in play.said[-1]
    assert "alpha" not in play.lake.tables
    assert play.ledger() == []


@pytest.mark.parametrize("length", [0, 1, 20, 100, -1])
def test_a_plan_that_was_cut_short_halts_and_says_which_it_is(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    play = plain_play(1, monkeypatch, dedupe=False)
    name = stopped_behind_its_plan(play)
    play.lake.objects[name] = play.lake.objects[name][:length]
    for begin in (play.attempt, lambda: play.driver().finish_earlier()):
        play.said.clear()
        try:
            begin()
        except Halt as halted:
            play.said.append(str(halted))
        assert f"{name} is not the plan of a batch" in play.said[-1]


def test_a_history_that_is_played_alone_is_the_one_that_was_played_among_others() -> None:
    def played(*seeds: int) -> tuple[list[str], dict[str, list[int]]]:
        for seed in seeds:
            with a_history(Play, seed) as play:
                play.play()
        return play.said, {name: table.at for name, table in play.lake.tables.items()}

    assert played(3) == played(1, 2, 3)
