"""Histories on paper in which a copy of the lake, made between any two effects, takes its place later. The job goes on with its
checkpoint or with a new one, and a backfill announces what the ledger of the copy does not have. Nothing stops, every object
that S3 still has stands once, and every sum holds.

FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest

from forebay.batch.plan import Plan
from forebay.batch.retrying.plan import Choice
from forebay.ledger.entry import FORGET, FORGOTTEN, WANTED_AGAIN
from tests.batch.paper import Lake, Table
from tests.batch.test_paper_histories import Play, in_time, play_all
from tests.batch.world import Died


@dataclass(frozen=True)
class Copy:
    tables: dict[str, Table]
    objects: dict[str, bytes]

    @classmethod
    def of(cls, lake: Lake) -> Copy:
        return cls(deepcopy(lake.tables), dict(lake.objects))


class Restores(Play):
    operator_acts = False

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.rolls_back = self.versioned = False
        self.beside = None
        self.copy: Copy | None = None

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        return {self.make_copy: 8, self.restore: 12, self.put: 8}

    def do(self, deeds: dict[Callable[[str], None], int], most: int) -> None:
        super().do(deeds, 2 * most)

    def make_copy(self, key: str) -> None:
        """Beside a batch or a retry, or between them."""

        def copied() -> None:
            self.said.append("a copy is made")
            self.copy = Copy.of(self.lake)

        if self.draw.random() < 0.2:
            copied()
            return
        held: Any = self.draw.choice(("quarantine", "parked"))
        self.lake.meanwhile = (self.draw.randint(0, 16), copied)
        if self.tables_fail and self.draw.random() < 0.4:
            self.retries(Choice(held), self.draw.choice((None, *range(9))))
        else:
            self.attempt(self.draw.choice((None, *range(24))))
        self.lake.meanwhile = None

    def restore(self, key: str) -> None:
        """The job is stopped, and starts again. Versions that nobody announces are those that S3 no longer has."""
        if self.copy is None:
            return
        self.said.append("the copy takes the place of the lake")
        self.lake.tables, self.lake.objects = deepcopy(self.copy.tables), dict(self.copy.objects)
        gone = [row for row in self.ledger() if row["outcome"] in (FORGET, FORGOTTEN) and row["reason"] != WANTED_AGAIN]
        self.model.forgotten = {row["file_id"] for row in gone}
        try:
            self.driver(self.draw.choice((None, None, *range(8)))).finish_earlier()
        except Died:
            self.driver().finish_earlier()
        if self.draw.random() < 0.6:
            self.new_checkpoint()
        known = {row["file_id"] for row in self.ledger()}
        on_the_way = {file.file_id for file in [*self.taken, *self.waiting]}
        newest = {put.file.file_id for put in self.model.newest.values()}
        self.waiting += [self.model.puts[one].file for one in newest if one not in known and one not in on_the_way]
        plans = [Plan.decode(content) for name, content in self.lake.objects.items() if "/plans/" in name]
        planned = {file.file_id for plan in plans for file in plan.files}
        lost = self.model.puts.keys() - known - on_the_way - newest - planned
        self.model.puts = {one: put for one, put in self.model.puts.items() if one not in lost}


@in_time
def test_a_copy_of_the_lake_takes_its_place_and_what_is_missing_is_loaded_once() -> None:
    play_all(Restores)
