"""Which files of a batch wait for a retry, and when a batch begins anew because an operator changed his mind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forebay.batch.attempt.turns import Turns, waiting_end, waiting_in
from forebay.batch.retrying.plan import PLAN
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.decision import decide_files
from forebay.ledger.versions import Earlier

FIRST, SECOND = (LandedFile("landing", "a", 1, f"e{n}", f"v{n}", f"{n:016X}") for n in (1, 2))


def claim(files: list[LandedFile], **more: Any) -> Claim:
    held = {"quarantined": 0, "parked": 0}
    row = {"file_id": FIRST.file_id, "outcome": "loaded", "written": 2, "tables": {"alpha": 2}, **held, **more}
    return Claim(files, {("landing", "a"): [Earlier(FIRST, row)]}, lambda key: "replace")


@pytest.mark.parametrize(("held", "waits"), [({"quarantined": 1}, True), ({"parked": 1}, True), ({}, False)])
def test_a_file_that_would_let_held_records_go_waits_for_a_retry(
    held: dict[str, int], waits: bool, tmp_path: Path
) -> None:
    turns, split = Turns(open_objects(str(tmp_path))), decide_files(claim([SECOND], **held), {SECOND.file_id: ""})
    assert turns.taken(split) == frozenset()
    assert not turns.lost(split, lambda: claim([SECOND], **held))
    open_objects(str(tmp_path)).write(PLAN, b"{}")
    assert turns.taken(split) == ({SECOND.file_id} if waits else frozenset())
    assert turns.lost(split, lambda: claim([SECOND], **held)) is waits


@pytest.mark.parametrize("landed", [[], [FIRST.file_id]])
def test_a_batch_begins_anew_where_a_replay_became_something_else_whether_its_file_was_read_or_not(
    landed: list[str], tmp_path: Path
) -> None:
    turns, before = Turns(open_objects(str(tmp_path))), claim([FIRST], outcome="replay")
    split = decide_files(before, dict.fromkeys(landed, ""))
    assert not turns.lost(split, lambda: replace(before))
    assert turns.lost(split, lambda: claim([FIRST], outcome="forget"))


def test_a_version_that_leaves_is_watched_and_one_that_stays_is_not(tmp_path: Path) -> None:
    turns, before = Turns(open_objects(str(tmp_path))), claim([SECOND])
    assert turns.lost(decide_files(before, {SECOND.file_id: ""}), lambda: claim([SECOND], outcome="forget"))
    assert not turns.lost(decide_files(before, {}), lambda: claim([SECOND], outcome="forget"))


def test_a_replay_that_was_not_read_makes_room_for_a_retry_and_is_not_watched_while_it_waits(tmp_path: Path) -> None:
    """Its row would get counts from before the retry."""
    turns, before = Turns(open_objects(str(tmp_path))), claim([FIRST], outcome="replay", quarantined=1)
    split = decide_files(before, {})
    open_objects(str(tmp_path)).write(PLAN, b"{}")
    assert turns.taken(split) == {FIRST.file_id}
    assert turns.lost(split, lambda: replace(before))
    assert not turns.lost(split, lambda: claim([FIRST], outcome="replay"), waiting_in([waiting_end(FIRST)]))
