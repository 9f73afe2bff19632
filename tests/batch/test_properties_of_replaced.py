"""A table gets its declared properties before its next rows, also if those replace earlier ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from forebay.batch import writing
from forebay.batch.writing import Writing
from forebay.declaration.loading import parse_service

FEED = {"delta.enableChangeDataFeed": "true"}
DECLARED = 'name = "s"\n[[tables]]\nname = "orders"\nproperties = { "delta.enableChangeDataFeed" = "true" }\n'


class Logs:
    """One log, with properties; the first commit of them meets another writer's."""

    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.has: dict[str, str] = {}
        self.is_overtaken = True

    def look(self, path: str, *, again: bool = False) -> object:
        return SimpleNamespace(path=path)

    def set_properties(self, seen: object, properties: dict[str, str]) -> bool:
        if self.has == properties:
            return False
        if not self.is_overtaken:
            self.has = dict(properties)
            self.steps.append(self.has)
        self.is_overtaken = False
        return True


def test_a_replay_into_a_table_sets_the_properties_before_rows_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    logs = Logs()
    monkeypatch.setattr(writing, "remove_then_append", lambda *_, **__: logs.steps.append("rows"))
    batch = Mock(lake="s3://lake", logs=logs, is_there=lambda _: True)
    batch.give_properties = lambda path, properties: Writing.give_properties(batch, path, properties)
    (table,) = parse_service({"service.toml": DECLARED}).tables
    Writing.replaced(batch, table, "orders", ["f1"], Mock())
    assert logs.steps == [FEED, "rows"]
