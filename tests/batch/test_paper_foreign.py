"""Histories on paper in which other writers commit to our tables between any two steps: a person deletes rows, optimizes, or
restores an earlier version. Nothing stops for it. Rows that a person deleted stay away until their file is wanted again, no
row comes twice but those that a restore brought back, and a batch after a foreign commit loads its rows as ever.

Drops are in `test_paper_drops`. FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from forebay.ledger.entry import FORGOTTEN, REPLAY, WANTED_AGAIN
from tests.batch.test_paper_histories import TABLES, Play, in_time, play_all, service

WANTED = ((REPLAY, None), (REPLAY, "not-replayed"), (FORGOTTEN, WANTED_AGAIN))
Row = tuple[str, str, int]
"""A row: its table, its file, and the place of its record."""


class Foreign(Play):
    """The commits have no transaction of ours, and none of ours is lost by them."""

    operator_acts = False

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.rolls_back = self.versioned = False
        self.beside = None
        self.dedupe, self.service = False, service(False)
        self.deleted: set[Row] = set()
        """What a person deleted. A file that is replayed, brought back or put again brings its rows."""
        self.away: set[Row] = set()
        """The same, and what a restore took away."""
        self.back: set[Row] = set()
        """What a restore brought back, behind the ledger: loaded once more, it is there twice, and the audit says so."""

    def play(self) -> None:
        """Before any effect of a batch, too."""
        real = self.lake.effect

        def effect(deed: Callable[[], None]) -> None:
            if not self.ending and self.draw.random() < 0.1:
                self.foreign()
            real(deed)

        self.lake.effect = effect  # type: ignore[method-assign]
        super().play()

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        return {self.foreign: 12}

    def replay(self, key: str) -> None:
        super().replay(key)
        self.wanted_again()

    def bring_back(self, key: str) -> None:
        super().bring_back(key)
        self.wanted_again()

    def put_back(self, key: str) -> None:
        super().put_back(key)
        self.wanted_again()

    def wanted_again(self) -> None:
        marked = (row["file_id"] for row in self.ledger() if (row["outcome"], row["reason"]) in WANTED)
        again = {*marked, *(file.file_id for file in self.waiting)}
        self.deleted = {row for row in self.deleted if row[1] not in again}

    def foreign(self, key: str = "") -> None:
        there = [name for name in TABLES if name in self.lake.tables]
        if there:
            name = self.draw.choice(there)
            deed = self.draw.choice((self.rows_are_deleted, self.rows_are_deleted, self.optimized, self.restored))
            self.said.append(f"somebody: {deed.__name__} {name}")
            deed(name)

    def rows_are_deleted(self, name: str) -> None:
        table = self.lake.tables[name]
        leave = [row for row in table.rows if self.draw.random() < 0.4]
        self.deleted |= rows_of(name, leave)
        self.away |= rows_of(name, leave)
        self.wanted_again()
        table.change([row for row in table.rows if row not in leave])

    def optimized(self, name: str) -> None:
        table = self.lake.tables[name]
        table.change(self.draw.sample(table.rows, len(table.rows)))

    def restored(self, name: str) -> None:
        """By hand. The transactions of the commits that it takes back stay, as in Delta."""
        table = self.lake.tables[name]
        then = self.draw.choice(table.versions)
        self.away |= rows_of(name, table.rows) - rows_of(name, then)
        self.deleted -= rows_of(name, then)
        self.back |= rows_of(name, then) - rows_of(name, table.rows)
        table.change(then)

    def check(self) -> None:
        rows = Counter(row for name in TABLES for row in rows_of(name, self.lake.rows(name)))
        assert self.deleted.isdisjoint(rows), "what a person deleted is back"
        super().check()

    def none_is_twice(self, records: Counter[tuple[str, int]]) -> None:
        back = {(file_id, at) for _, file_id, at in self.back}
        super().none_is_twice(Counter({one: times for one, times in records.items() if one not in back}))

    def sums_must_hold(self, told: dict[str, Counter[str]], there: dict[str, Counter[str]]) -> None:
        """Only what somebody else took away is missing. A restore may bring rows of files back that were replaced since."""
        for name, counts in told.items():
            gone = Counter(file_id for table, file_id, _ in self.away if table == name)
            assert counts - there[name] <= gone, f"{name} lacks {counts - there[name] - gone}"
            restored = Counter(file_id for table, file_id in self.brought_back() if table == name)
            assert not (there[name] - counts).keys() - restored.keys()

    def brought_back(self) -> set[tuple[str, str]]:
        tables = {name: self.lake.tables[name] for name in TABLES if name in self.lake.tables}
        return {(name, row["_file_id"]) for name, table in tables.items() for rows in table.versions for row in rows}


def rows_of(name: str, rows: Sequence[dict[str, Any]]) -> set[Row]:
    return {(name, row["_file_id"], row["byte_offset"]) for row in rows}


@in_time
def test_whatever_others_commit_our_rows_come_once_and_what_they_deleted_stays_away() -> None:
    play_all(Foreign)
