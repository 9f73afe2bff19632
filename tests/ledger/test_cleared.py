"""Notices of deletions that forebay made itself are told apart from those of a producer."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forebay.aws.preflight import CLOCKS_DIFFER
from forebay.lake.objects import open_objects
from forebay.landed_file import DELETED, LandedFile
from forebay.ledger.cleared import deletions_of_ours
from forebay.ledger.decision import decide_files
from forebay.upkeep.after_load.due import DueFile
from forebay.upkeep.after_load.effect import Action, Done
from forebay.upkeep.after_load.notes import Notes
from tests.ledger.test_ignored import Known, row_of, service_of

NOW = datetime.now(UTC)
FILE = LandedFile("landing", "in/a.json", 10, "etag", sequencer="01", event_time=NOW - timedelta(days=7))


def deletion(after: timedelta = timedelta(), bucket: str = "landing", key: str = "in/a.json") -> LandedFile:
    return LandedFile(bucket, key, None, f"{DELETED}{after}", sequencer="05", event_time=NOW + after)


def note(lake: Path, action: Action = "moved", at: datetime = NOW, key: str = "in/a.json") -> None:
    file = DueFile(FILE.file_id, "landing", key, None, "etag", 10, "2026-11-20")
    Notes(open_objects(str(lake)), "s").add([Done(file, action, "s3://archive/a.json", at)])


@pytest.mark.parametrize("action", ["moved", "deleted"])
@pytest.mark.parametrize("after", [-CLOCKS_DIFFER, timedelta(seconds=-1), timedelta(), CLOCKS_DIFFER])
def test_a_deletion_at_the_time_of_a_note_is_ours(action: Action, after: timedelta, tmp_path: Path) -> None:
    note(tmp_path, action)
    ours = deletion(after)
    assert deletions_of_ours([FILE, ours], open_objects(str(tmp_path)), {}) == {ours.file_id}


@pytest.mark.parametrize(
    ("after", "next_note", "is_ours"),
    [
        (-timedelta(minutes=1), None, True),
        (-CLOCKS_DIFFER - timedelta(seconds=1), None, False),
        (timedelta(hours=5), None, True),
        (timedelta(hours=5), timedelta(hours=6), True),
        (timedelta(hours=5), timedelta(hours=1), False),
    ],
)
def test_a_deletion_by_a_run_that_died_is_ours_until_the_next_note(
    after: timedelta, next_note: timedelta | None, is_ours: bool, tmp_path: Path
) -> None:
    note(tmp_path, "started")
    if next_note is not None:
        note(tmp_path, "gone", NOW + next_note)
    deleted = deletion(after)
    found = deletions_of_ours([FILE, deleted], open_objects(str(tmp_path)), {})
    assert found == ({deleted.file_id} if is_ours else set())


@pytest.mark.parametrize(
    ("after", "next_note", "is_ours"),
    [
        (timedelta(hours=23), None, True),
        (timedelta(days=2), None, False),
        (timedelta(days=2), "gone", False),
        (timedelta(days=2), "replaced", False),
        (timedelta(days=2), "moved", True),
        (timedelta(hours=23), "replaced", True),
    ],
)
def test_a_file_that_after_load_could_not_delete_is_deleted_by_somebody_else_a_day_later(
    after: timedelta, next_note: Action | None, is_ours: bool, tmp_path: Path
) -> None:
    """S3 refused the deletion. The note from before stays, and a compaction may make its data file as new as the deletion."""
    note(tmp_path, "started", NOW - timedelta(days=5))
    if next_note is not None:
        note(tmp_path, next_note)
    deleted = deletion(after - timedelta(days=5))
    found = deletions_of_ours([FILE, deleted], open_objects(str(tmp_path)), {})
    assert found == ({deleted.file_id} if is_ours else set())


@pytest.mark.parametrize("action", ["gone", "replaced"])
def test_what_after_load_did_not_delete_is_not_ours(action: Action, tmp_path: Path) -> None:
    note(tmp_path, action)
    assert deletions_of_ours([deletion()], open_objects(str(tmp_path)), {}) == set()


@pytest.mark.parametrize(
    "other",
    [
        deletion(CLOCKS_DIFFER + timedelta(seconds=1)),
        deletion(-CLOCKS_DIFFER - timedelta(seconds=1)),
        deletion(bucket="other"),
        deletion(key="in/b.json"),
        LandedFile("landing", "in/a.json", None, f"{DELETED}7"),
    ],
)
def test_another_deletion_is_not_ours(other: LandedFile, tmp_path: Path) -> None:
    note(tmp_path)
    assert deletions_of_ours([other], open_objects(str(tmp_path)), {}) == set()


def test_without_deletions_or_notes_nothing_is_ours_and_old_notes_are_not_read(tmp_path: Path) -> None:
    notes = open_objects(str(tmp_path))
    assert deletions_of_ours([deletion()], notes, {}) == set()
    note(tmp_path)
    for data in tmp_path.glob("day=*/*.parquet"):
        data.unlink()
    assert deletions_of_ours([FILE], notes, {}) == set()
    long_after_the_note = datetime.now(UTC) - NOW + 2 * CLOCKS_DIFFER + timedelta(days=1)
    assert deletions_of_ours([deletion(long_after_the_note)], notes, {}) == set()


def test_a_deletion_of_ours_takes_out_nothing_and_is_told_in_the_ledger(tmp_path: Path) -> None:
    note(tmp_path)
    ledger = Known(row_of(FILE, "loaded"))
    ledger._notes = open_objects(str(tmp_path))
    ours, theirs = deletion(), deletion(timedelta(hours=1))
    forgets = service_of('on_delete = "forget"')
    found = decide_files(ledger.claim([ours], forgets), {})
    assert [(one.file, one.outcome, one.reason) for one in found.left_out] == [(ours, "ignored", "after-load")]
    assert (found.fresh, found.superseded) == ((), ())
    found = decide_files(ledger.claim([ours, theirs], forgets), {})
    assert [one.earlier.file for one in found.superseded] == [FILE]
    assert [one.by for one in found.superseded] == [theirs]


@pytest.mark.parametrize(
    ("etag", "sequencer", "is_theirs"),
    [("other", "03", True), ("other", "06", False), ("other", "00", False), ("etag", "03", False)],
)
@pytest.mark.parametrize("in_ledger", [True, False])
def test_a_deletion_of_what_was_put_after_ours_is_the_producers(
    etag: str, sequencer: str, is_theirs: bool, in_ledger: bool, tmp_path: Path
) -> None:
    """Ours was of the etag that the note's file has, so another content came after it. The same one tells nothing."""
    note(tmp_path)
    again = replace(FILE, etag=etag, version_id="v2", sequencer=sequencer)
    ledger = Known(row_of(FILE, "loaded"), *([row_of(again, "loaded")] if in_ledger else []))
    ledger._notes = open_objects(str(tmp_path))
    theirs, forgets = deletion(timedelta(minutes=5)), service_of('on_delete = "forget"')
    found = decide_files(ledger.claim([theirs] if in_ledger else [again, theirs], forgets), {again.file_id: "x"})
    assert ("after-load" in [one.reason for one in found.left_out]) is not is_theirs


def test_a_batch_that_goes_on_asks_for_no_notes(tmp_path: Path) -> None:
    """A note that came meanwhile would change what its plan says."""
    note(tmp_path)
    ledger = Known(row_of(FILE, "loaded"))
    ledger._notes = open_objects(str(tmp_path))
    ours, forgets = deletion(), service_of('on_delete = "forget"')
    assert decide_files(ledger.claim([ours], forgets, cleared=()), {}).fresh == (ours,)
    assert decide_files(ledger.claim([ours], forgets, cleared={ours.file_id}), {}).fresh == ()
