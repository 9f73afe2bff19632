"""One table that cannot be read or written is that table's trouble, and nobody else's."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from forebay.batch.new_tables import NewTables
from forebay.batch.writing import Writing
from forebay.declaration.loading import builtin_service
from forebay.table.commit import LogFailed, Txn
from forebay.table.destination import Failed

LAKE = "s3://lake"


class Logs:
    """`alpha` asks for a feature that nobody here knows, `gone` is no table, all others are."""

    def has(self, path: str, txn: Txn, *, again: bool = False) -> bool:
        return path == f"{LAKE}/done"

    def look(self, path: str, *, again: bool = False) -> object | None:
        if path == f"{LAKE}/alpha":
            raise LogFailed("UnsupportedTableFeatureException", "alpha has the feature of tomorrow")
        if path.startswith((f"{LAKE}/gone", f"{LAKE}/new")):
            return None
        return SimpleNamespace(derived_from="changes" if path == f"{LAKE}/state" else "")


@pytest.fixture
def writing() -> Writing:
    made: dict[str, Any] = {"spark": None, "logs": Logs(), "emit": lambda event: None, "tables_at_once": 1}
    made |= {
        "service": builtin_service().model_copy(update={"new_tables_per_day": 1}),
        "generation": "g",
        "txn": Txn("a", 1),
        "new_tables": NewTables(),
    }
    return Writing(lake=LAKE, began_at=datetime(2026, 11, 22, tzinfo=UTC), catalog=None, **made)


def test_a_table_whose_log_cannot_be_read_is_not_taken_for_a_new_one(writing: Writing) -> None:
    assert writing.too_new({"alpha", "beta", "new_1", "new_2"}) == {"new_2"}


def test_a_table_whose_log_cannot_be_read_fails_alone_where_rows_are_replaced(writing: Writing) -> None:
    assert writing.is_there("alpha")
    assert isinstance(writing.replaced(None, "alpha", ["f"], None), Failed)


def test_a_table_that_a_merge_computes_takes_no_rows_and_lets_none_leave(writing: Writing) -> None:
    assert writing.derived({"alpha", "beta", "gone", "state"}) == {"state"}
    found = writing.replaced(None, "state", ["f"], None)
    assert isinstance(found, Failed)
    assert "a merge or a rollup computes this table" in str(found.error)
    assert not found.may_be_in


def test_a_table_whose_log_cannot_be_read_is_registered_later(writing: Writing) -> None:
    class Catalog:
        def keep(self, *_: object) -> None:
            raise AssertionError("there is nothing to register")

    object.__setattr__(writing, "catalog", Catalog())
    writing.register("alpha")
