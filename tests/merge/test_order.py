"""Which change of a key wins, by the definition."""

from __future__ import annotations

from itertools import permutations
from typing import Any

from tests.merge.order import Change, current_state, folded_state, history, snapshot


def change(at: int, row: str, *, file: str = "f", line: int = 1, deletes: bool = False) -> Change:
    return Change(("k",), (at,), file, line, 0, deletes, row)


def state(*changes: Change) -> list[Any]:
    return [found.row for found in current_state(changes).values()]


def test_the_latest_change_wins_in_whatever_order_changes_come() -> None:
    changes = [change(1, "one"), change(3, "three"), change(2, "two")]
    assert all(state(*order) == ["three"] for order in permutations(changes))


def test_a_delete_wins_over_older_changes_and_not_over_newer_ones() -> None:
    gone, old, new = change(2, "gone", deletes=True), change(1, "old"), change(3, "new")
    assert state(gone, old) == state(old, gone) == []
    assert state(gone, new) == state(new, gone) == ["new"]


def test_of_changes_of_the_same_moment_the_place_decides() -> None:
    one, other, later_line = change(1, "a"), change(1, "b", file="g"), change(1, "c", file="g", line=2)
    assert all(state(*order) == ["c"] for order in permutations([one, other, later_line]))


def test_each_change_is_in_force_until_the_next_one_and_a_delete_is_only_an_end() -> None:
    changes = [change(1, "one"), change(4, "four"), change(2, "gone", deletes=True), change(4, "same", file="g")]
    for order in permutations(changes):
        (versions,) = history(order).values()
        assert [(one.change.sequence[0], one.change.row, one.until) for one in versions] == [
            (1, "one", 2),
            (4, "same", None),
        ]
    assert history([change(1, "gone", deletes=True)]) == {}


def test_a_change_without_a_value_leaves_the_earlier_one_until_a_delete_clears_all() -> None:
    def says(at: int, **row: Any) -> Change:
        return Change(("k",), (at,), "f", 1, 0, row.get("op") == "d", {"_line": at, **row})

    name, level, gone = says(1, name="Ann", level=None), says(2, name=None, level=7), says(3, op="d")
    later = says(4, name=None, level=9)
    for order in permutations([name, level]):
        (row,) = (change.row for change in folded_state(order).values())
        assert row == {"_line": 2, "name": "Ann", "level": 7}
    for order in permutations([name, level, gone]):
        assert folded_state(order) == {}
    for order in permutations([name, level, gone, later]):
        (row,) = (change.row for change in folded_state(order).values())
        assert (row["name"], row["level"]) == (None, 9)


def test_what_is_not_in_the_newest_snapshot_is_gone() -> None:
    def in_it(key: str, day: int, file: str = "f", *, deletes: bool = False) -> Change:
        return Change((key,), (day,), file, 1, 0, deletes, f"{key}{day}{file}")

    changes = [in_it("a", 1), in_it("b", 1), in_it("b", 2), in_it("c", 2, "part"), in_it("b", 2, "part")]
    for order in permutations(changes):
        assert sorted(one.row for one in snapshot(order).values()) == ["b2part", "c2part"]
    assert list(snapshot([*changes, in_it("c", 2, "z", deletes=True)])) == [("b",)]
    assert snapshot([]) == {}
