"""Histories on paper in which rows that are too old leave between any two effects of a batch (`keep_days`), but for those of
files in an open batch. Nothing stops for it, no row comes twice, and the ledger has what is left.

FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from forebay.batch.plan import Plan
from forebay.lake.layout import LEDGER
from forebay.upkeep.erase.counts import counts_after
from tests.batch.test_paper_histories import TABLES, Play, in_time, play_all, service


class Expiry(Play):
    """As `upkeep.erase.age` does it. Rows are old once the batch that wrote them has ended."""

    operator_acts = False

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.dedupe, self.service = False, service(False)
        self.tables_fail = self.draw.random() < 0.5
        self.rolls_back, self.versioned, self.beside = False, False, None
        self.old: dict[int, dict[str, Any]] = {}

    def play(self) -> None:
        real = self.lake.effect

        def effect(deed: Callable[[], None]) -> None:
            if not self.ending and self.in_batch and self.draw.random() < 0.1:
                self.expire()
            real(deed)

        self.lake.effect = effect  # type: ignore[method-assign]
        super().play()

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        return {self.expire: 3, self.replay: 8, self.withhold: 4}

    def attempt(self, dies_after: int | None = None) -> None:
        super().attempt(dies_after)
        if not self.taken:
            self.old = {id(row): row for name in TABLES for row in self.lake.rows(name)}

    def expire(self, key: str = "") -> None:
        name = self.draw.choice(TABLES)
        plans = (Plan.decode(told) for at, told in self.lake.objects.items() if "/plans/" in at)
        busy = {file.key for plan in plans for file in plan.files}
        stays, gone = list[dict[str, Any]](), Counter[str]()
        for row in self.lake.rows(name):
            of = self.model.puts[row["_file_id"]].file
            if id(row) in self.old and of.key not in busy and self.draw.random() < 0.5:
                gone[of.file_id] += 1
            else:
                stays.append(row)
        if gone:
            self.said.append(f"rows of {[self.model.puts[one].file.etag for one in gone]} leave {name}")
            self.lake.tables[name].change(stays)
            ledger = self.lake.tables[LEDGER]
            ledger.change([self.counted(row, name, gone[row["file_id"]]) for row in ledger.rows])

    @staticmethod
    def counted(row: dict[str, Any], table: str, rows: int) -> dict[str, Any]:
        after = counts_after(row, {table: rows}) if rows else row
        return {**row, **after, "tables": dict(after["tables"])}

    def what_should_stand(self, ledger: Sequence[dict[str, Any]]) -> None:
        """Any row may be too old."""


@in_time
def test_rows_that_are_too_old_leave_beside_batches_and_every_sum_holds() -> None:
    play_all(Expiry)
