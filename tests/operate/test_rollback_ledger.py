"""What the ledger says of each file after a rollback: pure arithmetic, so every case is here without a table."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from forebay.errors import Halt
from forebay.ledger.entry import FORGET, FORGOTTEN, PARTLY_REPLAYED, PUT_AGAIN, REPLAY, ROLLED_BACK, WANTED_AGAIN
from forebay.operate.changing import rollback_ledger
from forebay.operate.changing.rollback_ledger import Reading, Rollback, TableBack, entries_after, files_of
from tests.operate.ledger import entry

AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
EARLIER = AT - timedelta(minutes=1)
SUMS = ("outcome", "reason", "records", "written", "dropped")


@pytest.fixture(autouse=True)
def ledger(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The rows that are there."""
    rows = list[dict[str, Any]]()

    def rows_with(_: object, what: str, by: str, values: Collection[str]) -> list[dict[str, Any]]:
        return [row for row in rows if row[by] in values]

    monkeypatch.setattr(rollback_ledger, "rows_with", rows_with)
    return rows


def row(file_id: str = "f", tables: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    made = entry(f"in/{file_id}", file_id=file_id, tables=tables or {}, **{"claimed_at": AT, **more})
    return {**made, "records": made["written"] + made["dropped"]}


def back(*, replay: bool = False, read: datetime | None = AT, **changes: int) -> Rollback:
    """`read`: when the rows were read that come, if they tell."""
    came = {"f": read.isoformat()} if read else {}
    tables = [TableBack(name, 2, 1, {"f": rows}, came if rows > 0 else {}) for name, rows in changes.items()]
    return Rollback("n", tuple(tables), replay)


def after(plan: Rollback) -> dict[str, tuple[Any, ...]]:
    return {one["file_id"]: (*(one[name] for name in SUMS), dict(one["tables"])) for one in entries(plan)}


def entries(plan: Rollback) -> list[dict[str, Any]]:
    no_table: Any = None
    return entries_after(no_table, plan, files_of(no_table, plan))


@pytest.mark.parametrize(
    ("was", "changes", "then"),
    [
        (row(tables={"alpha": 3}), {"alpha": -2}, ("loaded", ROLLED_BACK, 3, 1, 2, {"alpha": 1})),
        (row(tables={"alpha": 3}, dropped=1), {"alpha": -3}, ("loaded", ROLLED_BACK, 4, 0, 4, {})),
        (row(tables={"b": 1, "a": 3}), {"a": -3, "c": 0}, ("loaded", ROLLED_BACK, 4, 1, 3, {"b": 1})),
        (row(dropped=3, reason=ROLLED_BACK), {"alpha": 2}, ("loaded", ROLLED_BACK, 3, 2, 1, {"alpha": 2})),
        (row(dropped=3, reason=ROLLED_BACK), {"alpha": 3}, ("loaded", None, 3, 3, 0, {"alpha": 3})),
        (row(dropped=3, reason="table-failed"), {"alpha": 3}, ("loaded", "table-failed", 3, 3, 0, {"alpha": 3})),
        (row(outcome="superseded", reason="overwritten", dropped=3), {"a": 3}, ("loaded", None, 3, 3, 0, {"a": 3})),
        (
            row(outcome="superseded", reason="overwritten", tables={"a": 3}),
            {"a": -1},
            ("superseded", ROLLED_BACK, 3, 2, 1, {"a": 2}),
        ),
        (
            row(outcome="superseded", reason="overwritten", dropped=3),
            {"a": 5},
            ("loaded", ROLLED_BACK, 5, 5, 0, {"a": 5}),
        ),
        (
            row(outcome="superseded", reason=PUT_AGAIN, tables={"a": 3}),
            {"a": -3},
            ("superseded", PUT_AGAIN, 3, 0, 3, {}),
        ),
        (row(outcome="superseded", reason=PUT_AGAIN, dropped=3), {"a": 3}, (REPLAY, None, 3, 3, 0, {"a": 3})),
        (row(outcome="empty"), {"a": 2}, ("loaded", ROLLED_BACK, 2, 2, 0, {"a": 2})),
        (row(outcome=FORGOTTEN, dropped=2), {"a": 2}, (FORGET, None, 2, 2, 0, {"a": 2})),
        (row(outcome=FORGOTTEN, reason=WANTED_AGAIN, dropped=1), {"a": 1}, (REPLAY, None, 1, 1, 0, {"a": 1})),
        (row(outcome="missing", dropped=2), {"a": 2}, (REPLAY, None, 2, 2, 0, {"a": 2})),
        (row(outcome="skipped", reason="by-operator"), {"a": 2}, (REPLAY, ROLLED_BACK, 2, 2, 0, {"a": 2})),
        (row(outcome="denied", tables={"a": 2}), {"a": -2}, ("denied", ROLLED_BACK, 2, 0, 2, {})),
    ],
    ids=[
        *("some rows leave", "all rows leave", "those of another table stay", "some come back", "all come back"),
        *("a failed table stays said", "an earlier version is in force again", "an earlier version leaves"),
        *("more come back than left", "a file that waits still waits", "one that waited is read"),
        *("an empty file had rows before", "a forgotten file is forgotten again"),
        *("one that is wanted again is read", "a file that is read again", "one that was skipped since"),
        "nothing is left to make room for",
    ],
)
def test_each_file_has_its_sum_and_its_word(
    was: dict[str, Any], changes: dict[str, int], then: tuple[Any, ...], ledger: list[dict[str, Any]]
) -> None:
    ledger.append(was)
    assert after(back(**changes)) == {"f": then}


PARTLY: dict[str, Any] = {"reason": PARTLY_REPLAYED, "detail": "a; b is slow"}


@pytest.mark.parametrize(
    ("was", "changes", "read", "then"),
    [
        (row(tables={"a": 2, "b": 1}, **PARTLY), {"b": -1}, AT, (PARTLY_REPLAYED, "a; b is slow")),
        (row(tables={"a": 2, "b": 1}, **PARTLY), {"a": -1}, AT, (PARTLY_REPLAYED, "a; b is slow")),
        (row(tables={"a": 2, "b": 1}, **PARTLY), {"a": -2}, AT, (ROLLED_BACK, "b is slow")),
        (row(tables={"b": 1}, dropped=2, reason=ROLLED_BACK, quarantined=1), {"a": 2}, EARLIER, (PARTLY_REPLAYED, "a")),
        (row(tables={"a": 2, "b": 1}, dropped=2, **PARTLY), {"a": 2}, AT, (None, "b is slow")),
        (row(tables={"a": 2, "b": 1}, dropped=1, **PARTLY), {"a": 1}, EARLIER, (PARTLY_REPLAYED, "a; b is slow")),
        (row(tables={"b": 1}, dropped=2, detail="b is slow"), {"a": 2}, EARLIER, (None, "b is slow")),
        (row(dropped=2, parked=1, detail="slow"), {"a": 2}, EARLIER, (PARTLY_REPLAYED, "a; slow")),
        (row(tables={"a": 2}, parked=1), {"a": 0}, EARLIER, (None, None)),
        (row(dropped=2, parked=1), {"a": 2}, AT, (None, None)),
    ],
    ids=[
        *("another table goes back", "some of its rows leave", "its rows leave", "its rows come back"),
        *("rows of the last reading come", "more rows of the earlier one come"),
        *("nothing is held", "parked records are held", "no row comes", "of the last reading"),
    ],
)
def test_a_file_says_which_tables_have_rows_of_an_earlier_reading_that_a_retry_must_leave(
    was: dict[str, Any], changes: dict[str, int], read: datetime, then: tuple[Any, ...], ledger: list[dict[str, Any]]
) -> None:
    ledger.append(was)
    (found,) = entries(back(read=read, **changes))
    assert (found["reason"], found["detail"]) == then


@pytest.mark.parametrize(
    ("was", "rows", "read", "outcome"),
    [
        (row(tables={"alpha": 3}), -1, AT, REPLAY),
        (row(dropped=3), 3, AT, "loaded"),
        (row(dropped=3), 3, EARLIER, REPLAY),
        (row(dropped=3, claimed_at=None), 3, EARLIER, "loaded"),
        (row(dropped=3), 3, None, "loaded"),
        (row(dropped=3), 4, None, REPLAY),
        (row(dropped=1, quarantined=1), 1, AT, "loaded"),
        (row(outcome="empty"), 1, EARLIER, REPLAY),
        (row(outcome="superseded", dropped=1), 3, EARLIER, "loaded"),
        (row(outcome="superseded", tables={"alpha": 1}), -1, AT, "superseded"),
        (row(outcome=FORGOTTEN, reason=WANTED_AGAIN, dropped=1), 1, AT, REPLAY),
        (row(outcome=FORGET, tables={"alpha": 1}), -1, AT, FORGET),
    ],
)
def test_with_a_replay_the_files_that_lose_rows_or_get_earlier_ones_are_read_again(
    was: dict[str, Any], rows: int, read: datetime | None, outcome: str, ledger: list[dict[str, Any]]
) -> None:
    ledger.append(was)
    assert after(back(replay=True, read=read, alpha=rows))["f"][0] == outcome


def test_a_table_counts_by_file_what_comes_and_leaves_and_when_the_oldest_row_was_read_that_comes() -> None:
    later, unknown = AT + timedelta(minutes=1), None
    rows = {("f", later): 3, ("f", AT): 2, ("f", EARLIER): -1, ("g", AT): -4, ("g", unknown): 1, ("h", EARLIER): 0}
    one = TableBack.of("alpha", 2, 1, {Reading(*reading): count for reading, count in rows.items()})
    assert (one.changes, one.came) == ({"f": 4, "g": -3}, {"f": AT.isoformat()})
    assert (one.exchanged, one.leaving, one.coming, one.files) == (2, 5, 6, {"f", "g"})


@pytest.mark.parametrize(("read", "outcome"), [(AT, "loaded"), (EARLIER, REPLAY)])
def test_rows_are_told_apart_by_when_they_were_read(read: datetime, outcome: str, ledger: list[dict[str, Any]]) -> None:
    ledger.append(row(tables={"alpha": 2}))
    later = Reading("f", AT + timedelta(minutes=1))
    one = TableBack.of("alpha", 2, 1, {Reading("f", read): 1, later: -1, Reading(None, AT): 5, Reading("g", AT): 0})
    assert (dict(one.changes), one.files, one.leaving, one.coming) == ({}, {"f"}, 1, 1)
    again = TableBack(**json.loads(json.dumps(asdict(one))))
    assert after(Rollback("n", (again,), replay=True))["f"] == (outcome, None, 2, 2, 0, {"alpha": 2})


@pytest.mark.parametrize("replay", [True, False])
def test_every_later_version_takes_the_place_of_one_that_comes_back_again(
    replay: bool, ledger: list[dict[str, Any]]
) -> None:
    """One that was superseded itself does not, and two may have taken each other's place."""
    ledger += [
        row("f", outcome="superseded", superseded_by="g", dropped=1),
        row("g", outcome="superseded", superseded_by="h", dropped=1),
        row("h", tables={"alpha": 4}, superseded_by="g"),
        row("other", tables={"alpha": 1}),
    ]
    then = {file_id: one[0] for file_id, one in after(back(replay=replay, alpha=1)).items()}
    assert then == {"f": "loaded"} | ({"h": REPLAY} if replay else {})


def test_a_superseded_version_whose_rows_are_only_exchanged_for_those_of_an_earlier_reading_stays_superseded(
    ledger: list[dict[str, Any]],
) -> None:
    """Its table could not be written when the later version came. They leave as those before would have."""
    ledger += [row("f", outcome="superseded", reason="overwritten", tables={"alpha": 2}, superseded_by="g"), row("g")]
    plan = Rollback("n", (TableBack("alpha", 2, 1, {}, {"f": EARLIER.isoformat()}, 2),), replay=True)
    assert after(plan) == {"f": ("superseded", "overwritten", 2, 2, 0, {"alpha": 2})}


def test_versions_of_files_that_only_lose_rows_stay(ledger: list[dict[str, Any]]) -> None:
    ledger += [row("f", tables={"alpha": 2}, superseded_by="g"), row("g", tables={"alpha": 4}), row("h", dropped=1)]
    tables = (TableBack("alpha", 2, 1, {"f": -1}), TableBack("beta", 2, 1, {"h": 1}))
    then = after(Rollback("n", tables, replay=True))
    assert (then.keys(), then["f"][-1], then["h"][-1]) == ({"f", "h"}, {"alpha": 1}, {"beta": 1})


@pytest.mark.parametrize(
    ("more", "then"),
    [
        ({}, ("superseded", "overwritten")),
        ({"quarantined": 1}, ("loaded", ROLLED_BACK)),
        ({"superseded_by": None}, ("loaded", ROLLED_BACK)),
        ({"tables": {"alpha": 2, "beta": 1}}, ("loaded", ROLLED_BACK)),
        ({"outcome": REPLAY}, (REPLAY, ROLLED_BACK)),
    ],
    ids=["nothing is left", "it was replayed", "nothing came later", "in another table", "it is read again"],
)
def test_a_version_whose_rows_came_back_is_superseded_again_once_they_have_left(
    more: dict[str, Any], then: tuple[str, str], ledger: list[dict[str, Any]]
) -> None:
    was = {"tables": {"alpha": 2}, "superseded_by": "g", "reason": None, **more}
    ledger += [row("f", **was), row("g", dropped=1, reason=ROLLED_BACK)]
    assert after(back(alpha=-2))["f"][:2] == then


def test_a_later_version_that_loses_rows_itself_loses_them_and_is_read_again(ledger: list[dict[str, Any]]) -> None:
    ledger += [row("f", outcome="superseded", superseded_by="g", dropped=2), row("g", tables={"alpha": 4})]
    plan = Rollback("n", (TableBack("alpha", 2, 1, {"f": 2, "g": -4}),), replay=True)
    assert after(plan)["g"] == (REPLAY, ROLLED_BACK, 4, 0, 4, {})


def test_what_was_told_of_a_file_stays_told_unless_it_was_forgotten(ledger: list[dict[str, Any]]) -> None:
    ledger += [row("f", dropped=1, detail="alpha is closed"), row("g", outcome=FORGOTTEN, dropped=1, detail="left")]
    found = entries(Rollback("n", (TableBack("alpha", 2, 1, {"f": 1, "g": 1}),)))
    assert {one["file_id"]: one["detail"] for one in found} == {"f": "alpha is closed", "g": None}


def test_a_table_that_comes_back_says_what_leaves_and_what_comes() -> None:
    one = TableBack("alpha", 2, 1, {"f": -3, "g": 5, "h": -1, "i": 1})
    assert (one.leaving, one.coming) == (4, 6)
    assert Rollback("n", (one, TableBack("beta", 2, 1, {"j": 1}))).files == {"f", "g", "h", "i", "j"}


def test_a_ledger_that_does_not_fit_halts(ledger: list[dict[str, Any]]) -> None:
    with pytest.raises(Halt, match="1 file has rows that would leave or return, but the ledger has 0"):
        after(back(alpha=1))
    ledger.append(row(tables={"alpha": 1}))
    with pytest.raises(Halt, match="does not fit"):
        after(back(alpha=-2))
    assert after(back(alpha=-1))["f"][3] == 0
