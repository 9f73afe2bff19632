"""A flood of names does not become a flood of tables."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from forebay.batch.new_tables import NewTables
from forebay.lake.objects import open_objects

MONDAY, TUESDAY = date(2026, 11, 23), date(2026, 11, 24)


def test_only_so_many_names_a_day_become_tables() -> None:
    allowance = NewTables()
    assert allowance.refuse(["c", "a", "b"], MONDAY, 2) == {"c"}
    assert allowance.refuse(["d"], MONDAY, 2) == {"d"}


def test_a_name_that_was_let_through_is_let_through_again() -> None:
    allowance = NewTables()
    assert allowance.refuse(["a"], MONDAY, 1) == frozenset()
    assert allowance.refuse(["a", "b"], MONDAY, 1) == {"b"}


def test_each_day_begins_anew() -> None:
    allowance = NewTables()
    allowance.refuse(["a"], MONDAY, 1)
    assert allowance.refuse(["b"], TUESDAY, 1) == frozenset()


def test_none_may_be_allowed_at_all() -> None:
    assert NewTables().refuse(["a"], MONDAY, 0) == {"a"}


def test_a_driver_that_starts_again_goes_on_counting(tmp_path: Path) -> None:
    NewTables(open_objects(str(tmp_path))).refuse(["a", "b"], MONDAY, 2)
    again = NewTables(open_objects(str(tmp_path)))
    assert again.refuse(["b", "c"], MONDAY, 2) == {"c"}
    assert again.refuse(["c"], TUESDAY, 2) == frozenset()
    assert NewTables(open_objects(str(tmp_path))).refuse(["d"], TUESDAY, 1) == {"d"}
