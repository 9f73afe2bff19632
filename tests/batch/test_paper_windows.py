"""Histories on paper over many days, in which `dedupe` remembers a record for some of them. No record is lost, and a copy is
loaded again only where the window of its own day does not reach that of an earlier one. Batches and retries come late, and
are repeated on later days.

FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from forebay.lake.layout import IDS
from tests.batch.test_paper_histories import TABLES, Play, in_time, play_all, service

WINDOW = timedelta(days=3)


class Windows(Play):
    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.dedupe, self.service = True, service(True)
        self.tables_fail = self.draw.random() < 0.8
        self.rolls_back, self.versioned, self.beside = False, False, None
        self.keys, self.days = ("add/a", "add/b", "add/c", "new/a"), 0

    def now(self) -> datetime:
        return super().now() + timedelta(days=self.days)

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        return {self.days_pass: 8, self.put: 8, self.retry: 6 * self.tables_fail, self.replay: 4}

    def do(self, deeds: dict[Callable[[str], None], int], most: int) -> None:
        super().do(deeds, 2 * most)

    def days_pass(self, key: str = "") -> None:
        self.days += self.draw.randint(1, 5)

    def every_id_stands_once(self) -> None:
        """A copy of a later load stands beside one whose day is before its window."""
        ids = self.lake.rows(IDS)
        for name in TABLES:
            stand = [(row["_file_id"], row["id"]) for row in self.lake.rows(name)]
            known = [row for row in ids if row["table"] == name and (row["file_id"], row["id"][1]) in stand]
            assert len(known) == len(stand), "a row has no id, or several"
            for at, later in enumerate(known):
                for earlier in (one for one in known[:at] if one["id"] == later["id"]):
                    assert earlier["day"] < later["day"] - WINDOW, f"{later['id']} came twice"
        self.every_record_stands()

    def every_record_stands(self) -> None:
        stand = {(name, row["id"]) for name in TABLES for row in self.lake.rows(name)}
        for put in self.model.newest.values():
            if put.file.file_id not in self.model.forgotten:
                whole = (record for record in self.contents[put.file.file_id] if record.game and not record.broken)
                wanted = {(record.game, record.id) for record in whole}
                assert wanted <= stand, f"{put.file.etag} lacks {wanted - stand}"


@in_time
def test_no_copy_is_loaded_within_the_window_of_another_and_none_is_lost_after_it() -> None:
    play_all(Windows)
