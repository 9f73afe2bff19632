"""Held records that move: which fates count as moved, and what the ledger's row of each file says afterwards."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any
from unittest.mock import MagicMock

import pytest

from forebay.batch.accounting import Fate
from forebay.batch.ledger_change import Change
from forebay.batch.leftovers import Leftover
from forebay.batch.one_pass.writer import SUPERSEDED
from forebay.batch.retrying.chosen import Chosen
from forebay.batch.retrying.moving import Moving, Retried
from forebay.batch.retrying.plan import Choice, RetryPlan
from forebay.errors import Halt
from forebay.table.commit import UNSUPPORTED, LogFailed

LEDGER = "lake/_forebay/ledger"
COUNTS = {"records": 20, "written": 2, "parked": 0, "dropped": 1}


def row(file_id: str, **more: Any) -> dict[str, Any]:
    told = {"file_id": file_id, "key": file_id, "tables": {"alpha": 2}, "quarantined": 10, "reason": "table-failed"}
    return {**told, **COUNTS, **more}


class Retry(Moving):
    """One whose tables and ledger are lists. `done` are the addresses of those that have it already."""

    def __init__(
        self, fates: list[Fate], rows: list[dict[str, Any]], *, done: Collection[str] = (), **plan: Any
    ) -> None:
        logs = MagicMock()
        logs.has = lambda path, txn, again: path in done
        self.rows, self.left, self.waits, self.after = rows, list[Leftover](), set[str](), list[Change]()
        self.asked, self.let_go_of, self.kept = list[str](), set[str](), list[Collection[str]]()
        choice = plan.pop("choice", Choice("quarantine"))
        super().__init__(
            RetryPlan(1, 1, "", choice, {}, **plan),
            Chosen(fates, MagicMock()),
            MagicMock(wanted=False),
            MagicMock(logs=logs, place_of="lake/{}".format),
            reserved=MagicMock(),
            still_ours=lambda: None,
            keep=self.kept.append,
        )

    def ledger_rows(self, file_ids: Collection[str]) -> list[dict[str, Any]]:
        return [one for one in self.rows if one["file_id"] in file_ids]

    def leftovers(self, file_ids: Collection[str]) -> list[Leftover]:
        return self.left

    def change_ledger(self, changes: Callable[[], list[Change]]) -> None:
        self.after += changes()

    def wait_for_tables(self, file_ids: Collection[str], in_tables: Collection[str]) -> set[str]:
        self.asked += file_ids
        return self.waits

    def let_go(self, in_tables: set[str]) -> None:
        self.let_go_of |= in_tables


FATES = [
    Fate("f", "write", 2, "alpha", 0),
    Fate("f", "write", 3, "beta", 0),
    Fate("f", "drop", 1, "beta", 0, ("_duplicate",)),
    Fate("f", "park", 5),
    Fate("g", "write", 1, "alpha", 0),
    Fate("g", SUPERSEDED, 4, "alpha", 0),
]


def test_only_records_of_tables_that_have_them_and_dropped_ones_move() -> None:
    retry = Retry(FATES, [row("f"), row("g")], done={"lake/alpha", "lake/gamma"}, without=("h",))
    assert retry.run() == Retried(16, {"alpha": 3}, 1, 1, 4)
    assert (retry.let_go_of, retry.kept) == ({"alpha"}, [{"alpha"}])
    now = {one["file_id"]: one for _, one in retry.after}
    names = ("tables", "written", "quarantined", "dropped", "records")
    assert [now["f"][name] for name in names] == [{"alpha": 4}, 4, 7, 2, 20]
    assert [now["g"][name] for name in names] == [{"alpha": 3}, 3, 9, 1, 20]


@pytest.mark.parametrize("written", [None, ("alpha",)])
def test_a_retry_that_the_ledger_has_already_only_lets_records_go(written: Any) -> None:
    retry = Retry(FATES, [], done={LEDGER, "lake/alpha"}, written=written)
    assert retry.run().tables == {"alpha": 3}
    assert (retry.let_go_of, retry.after) == ({"alpha"}, [])


def test_parked_records_leave_the_count_of_parked_ones() -> None:
    rows = [row("f", parked=6, tables=None, written=0, reason=None)]
    retry = Retry([Fate("f", "write", 2, "alpha", 0)], rows, done={"lake/alpha"}, choice=Choice("parked"))
    retry.run()
    ((_, now),) = retry.after
    assert (now["parked"], now["quarantined"], now["tables"], now["written"]) == (4, 10, {"alpha": 2}, 2)


def test_a_reason_of_whole_tables_stays_as_long_as_records_wait_for_one() -> None:
    files = {"waits": {}, "done": {}, "other": {"reason": "not-json"}, "none": {"quarantined": 1}}
    rows = [row(name, **more) for name, more in files.items()]
    retry = Retry([Fate(name, "drop", 1) for name in files], rows)
    retry.waits = {"waits", "other"}
    retry.run()
    reasons = {now["file_id"]: now["reason"] for _, now in retry.after}
    assert reasons == {"waits": "table-failed", "done": None, "other": "not-json", "none": None}
    assert retry.asked == ["waits", "done"], "nothing of the others is held for a table"


def test_earlier_versions_leave_the_tables_that_got_the_records() -> None:
    """But not one whose records were dropped, as copies of others."""
    retry = Retry(FATES[:3], [row("f")], done={"lake/alpha"})
    retry.left = [Leftover({**row("older"), "tables": {name: 2}}) for name in ("alpha", "beta")]
    retry.run()
    left = [(now["tables"], now["written"], now["dropped"]) for _, now in retry.after if now["file_id"] == "older"]
    assert left == [({}, 0, 3)]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], "1 file has held records, but the ledger has 0"),
        ([row("f", quarantined=1)], "2 records leave, but the ledger"),
    ],
    ids=["no row", "fewer records"],
)
def test_a_ledger_that_does_not_fit_halts_before_records_leave(rows: list[dict[str, Any]], says: str) -> None:
    retry = Retry(FATES[:1], rows, done={"lake/alpha"})
    with pytest.raises(Halt, match=says):
        retry.run()
    assert retry.let_go_of == set()


@pytest.mark.parametrize("lasts", [True, False])
def test_a_table_whose_log_cannot_be_read_now_is_not_taken_for_one_that_failed(
    lasts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that cannot be read by Kernel at all is asked by its commits."""
    retry = Retry(FATES[:1], [row("f")])
    refused = LogFailed(min(UNSUPPORTED) if lasts else "io", "no answer")

    def has(path: str, txn: object, again: bool) -> bool:
        if path == "lake/alpha":
            raise refused
        return False

    retry.writing.logs.has = has
    monkeypatch.setattr("forebay.batch.retrying.moving.has_transaction", lambda *_: True)
    if lasts:
        assert retry.run().tables == {"alpha": 2}
    else:
        with pytest.raises(LogFailed):
            retry.run()
