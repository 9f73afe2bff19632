"""Histories on paper in which somebody drops tables, also while a retry is unfinished. Nothing stops for it, no row comes
twice, and only rows that were in a dropped table are missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.batch.test_paper_histories import TABLES, Play, in_time, play_all, service


class DropPlay(Play):
    """Tables fail, so records are held and retried. No plan of a batch is open when a table is dropped: its data files, which
    no log names yet, would be gone, and the batch says so and halts."""

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.dedupe, self.service = False, service(False)
        self.tables_fail, self.rolls_back, self.versioned, self.beside = True, False, False, None
        self.gone: dict[str, Counter[str]] = {name: Counter() for name in TABLES}

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        return {self.drop: 8, self.retry: 8}

    def drop(self, key: str) -> None:
        there = [name for name in TABLES if name in self.lake.tables]
        if there and not any("/plans/" in name for name in self.lake.objects):
            name = self.draw.choice(there)
            self.said.append(f"dropped {name}")
            self.gone[name].update(row["_file_id"] for row in self.lake.tables.pop(name).rows)

    def sums_must_hold(self, told: dict[str, Counter[str]], there: dict[str, Counter[str]]) -> None:
        for name, counts in told.items():
            assert there[name] <= counts
            assert counts - there[name] <= self.gone.get(name, Counter())


@in_time
def test_a_dropped_table_stops_nothing_and_no_other_row_is_missing() -> None:
    play_all(DropPlay)
