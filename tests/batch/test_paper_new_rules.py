"""Histories on paper in which the rule for overwritten keys changes while batches are open, in one or both of two services of a
lake. Nothing stops for it, no record comes twice, every sum holds, and a version that comes under the last rule ends by that
rule.

FOREBAY_PAPER_HISTORIES and FOREBAY_PAPER_HISTORY are those of `test_paper_histories`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from forebay.declaration.loading import parse_service
from forebay.declaration.service import Service
from tests.batch.paper import FIRST
from tests.batch.test_paper_histories import OTHER, TABLES, Beside, Play, in_time, play_all

RULES = {
    "append": 'overwritten = "append"\n',
    "ignore": 'overwritten = "ignore"\n',
    "replace": 'overwritten = "replace"\n',
    "forget": 'overwritten = "replace"\non_delete = "forget"\n',
}


def by_rule(rule: str, name: str, dedupe: bool = False) -> Service:
    again = 'columns = [{ name = "event_id" }]\ndedupe = { by = ["event_id"], days = 3 }\n' if dedupe else ""
    return parse_service({"service.toml": f'name = "{name}"\n{RULES[rule]}[[tables]]\nname = "{{game}}"\n{again}'})


class BesideByRule(Beside):
    def __init__(self, play: Play) -> None:
        super().__init__(play)
        self.service = by_rule("append", OTHER)

    def check(self) -> None:
        """The sums of both services are compared anyway. Which versions stand is asked of the first one."""


class NewRules(Play):
    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        super().__init__(seed, patch)
        self.versioned = self.rolls_back = False
        self.dedupe, self.rule = self.draw.random() < 0.3, self.draw.choice([*RULES])
        self.service = by_rule(self.rule, FIRST, self.dedupe)
        self.keys = ("new/a", "new/b")
        self.beside = BesideByRule(self) if self.draw.random() < 0.4 else None
        self.last: dict[str, str] = {}

    def more_deeds(self) -> dict[Callable[[str], None], int]:
        return {self.push: 10, self.put: 8}

    def do(self, deeds: dict[Callable[[str], None], int], most: int) -> None:
        super().do(deeds, 2 * most)

    def push(self, key: str) -> None:
        self.rule = self.draw.choice([*RULES])
        self.service = by_rule(self.rule, FIRST, self.dedupe).with_paused(self.service.paused)
        self.said.append(f"rule: {self.rule}")
        if self.beside and self.draw.random() < 0.5:
            self.beside.service = by_rule(self.draw.choice([*RULES]), OTHER)

    def end(self) -> None:
        super().end()
        for key in self.keys if self.rule != "ignore" else ():
            self.put(key)
            self.last[key] = self.model.newest[key].file.file_id
        super().end()

    def what_should_stand(self, ledger: Sequence[dict[str, Any]]) -> None:
        rows = {row["file_id"]: row for row in ledger}
        assert rows.keys() == self.model.puts.keys()
        for key, last in self.last.items():
            assert rows[last]["outcome"] == "loaded"
            assert self.dedupe or rows[last]["tables"] == self.model.puts[last].tables
            others = [row for row in ledger if row["key"] == key and row["file_id"] != last]
            assert self.rule == "append" or not any(row["written"] for row in others), f"{key} has two versions"

    def every_id_stands_once(self) -> None:
        for name in TABLES:
            ids = [row["id"] for row in self.lake.rows(name)]
            assert len(ids) == len({*ids})


@in_time
def test_rules_for_overwritten_keys_change_while_batches_are_open() -> None:
    play_all(NewRules)
