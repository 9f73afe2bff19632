"""What the rows of earlier versions say: whether their bytes are taken, and what becomes of a replay that nobody could read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.decision import files_to_read
from forebay.ledger.entry import ROLLED_BACK, TABLE_DROPPED
from forebay.ledger.versions import FILE_COLUMNS, SAME_BYTES, Earlier, Sorted, Superseded, standing

AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
FIRST, AGAIN = (LandedFile("landing", "a", 10, "e1", f"v{n}", f"{n:016X}", AT) for n in (1, 2))
NOTHING = {"written": 0, "quarantined": 0, "parked": 0, "dropped": 5, "tables": {}}


def row(file: LandedFile = FIRST, **more: Any) -> dict[str, Any]:
    counts = {"records": 5, "written": 5, "quarantined": 0, "parked": 0, "dropped": 0, "tables": {"alpha": 5}}
    told = {name: getattr(file, name) for name in (*FILE_COLUMNS, "event_time")}
    told |= {"file_id": file.file_id, "service": "s"}
    return {**told, "outcome": "loaded", "reason": None, "detail": None} | counts | more


def outcomes(**more: Any) -> list[str]:
    """Of the same bytes under a later version of their key, beside an earlier one with this row."""
    found = files_to_read(Claim([AGAIN], {("landing", "a"): [Earlier.of(row(**more))]}, lambda key: "append"))
    return ["loaded"] * len(found.fresh) + [entry.outcome for entry in found.left_out]


def test_bytes_whose_records_were_all_dropped_by_a_rule_are_taken() -> None:
    assert outcomes(**NOTHING) == ["duplicate"]


@pytest.mark.parametrize("reason", [ROLLED_BACK, TABLE_DROPPED])
def test_bytes_whose_rows_left_are_taken_while_they_wait_for_their_replay(reason: str) -> None:
    """The replay loads them: with the later version they would be there twice."""
    assert outcomes(**NOTHING, outcome="replay", reason=reason) == ["duplicate"]
    assert outcomes(**NOTHING, reason=reason) == ["loaded"]


def test_a_row_without_an_etag_is_of_a_file_with_an_empty_one() -> None:
    file = LandedFile("landing", "a", 10, "", "v1", "1", AT)
    assert Earlier.of(row(file, etag=None)).file == file


def test_a_row_without_tables_has_rows_in_none() -> None:
    assert Superseded(Earlier.of(row(outcome="empty", tables=None)), AGAIN).tables == {}


@pytest.mark.parametrize(("tries", "then"), [(None, 2), (1, 2), (3, 4)])
def test_a_replay_that_s3_withheld_was_tried_once_more(tries: int | None, then: int) -> None:
    """The pause before the next try depends on it."""
    one = Superseded(Earlier.of(row(outcome="replay", tries=tries)), FIRST)
    assert one.not_replayed("denied", "")["tries"] == then
    assert one.not_replayed("missing", "")["tries"] == tries


@pytest.mark.parametrize(("outcome", "then"), [("denied", "replay"), ("missing", "superseded")])
def test_a_superseded_file_that_is_back_and_was_withheld_is_tried_again(outcome: str, then: str) -> None:
    one = Superseded(Earlier.of(row(outcome="superseded", reason="overwritten")), FIRST)
    assert one.not_replayed(outcome, "")["outcome"] == then


def test_a_duplicate_that_is_read_for_another_file_is_none_until_it_was_read() -> None:
    stands_in, duplicate = (Earlier.of(row(outcome=one, reason=SAME_BYTES)) for one in ("replay", "duplicate"))
    assert (stands_in.stands_in, stands_in.is_duplicate) == (True, False)
    assert (duplicate.stands_in, duplicate.is_duplicate) == (False, True)


def test_only_a_file_that_takes_its_own_place_is_a_replay() -> None:
    """One that makes room for another version has no rows that could stay where a table is not written."""
    third = LandedFile("landing", "b", 1, "e", "v", "1", AT)
    superseded = (
        Superseded(Earlier.of(row(AGAIN, outcome="replay", tables={"alpha": 2})), AGAIN),
        Superseded(Earlier.of(row(third, outcome="forget", tables={"beta": 3})), third),
        Superseded(Earlier.of(row(tables={"alpha": 1})), AGAIN),
    )
    found = Sorted((), (), (), superseded)
    assert found.replays == {AGAIN.file_id: superseded[0], third.file_id: superseded[1]}
    assert found.to_forget == {third.file_id: superseded[1]}
    assert standing(superseded) == {AGAIN.file_id: {"alpha": 2}, third.file_id: {"beta": 3}}
