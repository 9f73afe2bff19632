"""When a period is complete, and what it waits for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

from forebay.content.outcome import POISON
from forebay.declaration.complete import Complete, Period
from forebay.landed_file import LandedFile
from forebay.ledger.entry import SKIPPED_BY_OPERATOR, WANTED_AGAIN, Outcome
from forebay.upkeep.complete.judge import BATCH_ENDS, Judgement, Known, judge

TEN = datetime(2026, 11, 24, 10, tzinfo=UTC)
PERIOD = Period(TEN, TEN + timedelta(hours=1))
NOW = TEN + timedelta(hours=2)
FOLDER = "in/2026/11/24/10/"
PLACE = f"s3://drops/{FOLDER}"
MARKER = Complete(folder="in/%Y/%m/%d/%H/", marker="_DONE")
MANIFEST = Complete(folder="in/%Y/%m/%d/%H/", manifest="_COUNTS")
QUIET = Complete(folder="in/%Y/%m/%d/%H/", quiet_minutes=30)
DONE = {"loaded", "empty", "duplicate", "skipped", "superseded", "ignored", "forgotten", "deleted"}


def file(name: str = "a", minute: int = 5) -> LandedFile:
    return LandedFile("drops", f"{FOLDER}{name}", 7, f"e-{name}", event_time=TEN + timedelta(minutes=minute))


def row(of: LandedFile, outcome: str = "loaded", reason: str | None = None, **more: int) -> dict[str, Any]:
    counts = {"records": 10, "written": 7, "quarantined": 2, "parked": 1} | more
    where = {"file_id": of.file_id, "bucket": of.bucket, "key": of.key, "event_time": of.event_time}
    return {**where, "outcome": outcome, "reason": reason, **counts}


def known(*rows: dict[str, Any], listed: tuple[LandedFile, ...] = (), **more: Any) -> Known:
    by_id = {one["file_id"]: one for one in rows}
    said = {"markers": {PLACE: b""}} | more
    return Known(services=("s",), listed=listed, rows=by_id, of_period=tuple(by_id), **said)


def why(rule: Complete, seen: Known, now: datetime = NOW) -> str:
    return judge(rule, PERIOD, seen, now).why


def test_held_records_are_counted_and_the_marker_makes_it_complete() -> None:
    a, b = file("a", 3), file("b", 9)
    found = judge(MARKER, PERIOD, known(row(a), row(b, "empty", written=0), listed=(a, b)), NOW)
    assert found == Judgement(files=2, rows=7, refused=6, first_arrival=a.event_time, last_arrival=b.event_time)


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_a_file_counts_as_done_only_where_its_outcome_is_final_and_its_records_were_read(outcome: str) -> None:
    assert (why(MARKER, known(row(file(), outcome), listed=(file(),))) == "") == (outcome in DONE)


@pytest.mark.parametrize(
    ("outcome", "reason", "is_done"),
    [
        ("unreadable", POISON, False),
        ("loaded", WANTED_AGAIN, False),
        ("forgotten", WANTED_AGAIN, False),
        ("skipped", SKIPPED_BY_OPERATOR, True),
        ("missing", SKIPPED_BY_OPERATOR, True),
    ],
)
def test_an_operators_word_decides(outcome: str, reason: str, is_done: bool) -> None:
    assert (why(MARKER, known(row(file(), outcome, reason), listed=(file(),))) == "") == is_done


def test_a_file_that_an_operator_wants_left_out_is_done_before_any_batch_says_so() -> None:
    for rows in ((row(file(), "unreadable"),), (row(file(), "missing"),), ()):
        seen = known(*rows, listed=(file(),))
        assert why(MARKER, seen) != ""
        assert why(MARKER, replace(seen, skipped={file().file_id})) == ""


def test_a_file_that_lies_there_and_is_in_no_row_is_waited_for_also_as_another_version() -> None:
    old, new = file(), replace(file(), etag="other")
    assert "1 file that is not loaded yet, such as s3://drops/in/" in why(MARKER, known(row(old), listed=(old, new)))


@pytest.mark.parametrize(("outcome", "is_waited_for"), [("loaded", True), ("duplicate", True), ("superseded", False)])
def test_a_folder_whose_files_after_load_moved_still_needs_its_marker(outcome: str, is_waited_for: bool) -> None:
    """Not one whose files were deleted, and their rows with them."""
    rule = Complete(folder="in/*/%Y-%m-%d/%H/", marker="_DONE")
    a, b = (LandedFile("drops", f"in/{who}/2026-11-24/10/x", 7, who, event_time=TEN) for who in "ab")
    seen = known(row(a), row(b, outcome), listed=(a,), markers={"s3://drops/in/a/2026-11-24/10/": b""})
    assert why(rule, seen) == ("waits for s3://drops/in/b/2026-11-24/10/_DONE" if is_waited_for else "")


def test_a_file_counts_as_loaded_under_the_id_of_any_of_the_services() -> None:
    other = row(replace(file(), service="s"))
    assert why(MARKER, known(other, listed=(file(),))) == ""
    assert why(MARKER, known(row(replace(file(), service="stranger")), listed=(file(),))) != ""


def test_a_file_of_a_batch_that_has_not_ended_is_waited_for_though_it_lies_there_no_longer() -> None:
    assert "in an unfinished batch" in why(MARKER, known(row(file()), on_their_way=[f"{FOLDER}b"]))


def test_only_an_unfinished_batch_makes_it_be_looked_at_again_soon() -> None:
    waiting = known(row(file(), "denied"), listed=(file(),))
    assert judge(MARKER, PERIOD, waiting, NOW).not_before is None
    assert judge(MARKER, PERIOD, replace(waiting, on_their_way=["b"]), NOW).not_before == NOW + BATCH_ENDS


def test_files_that_are_not_done_are_counted_by_outcome() -> None:
    seen = known(row(file("a"), "unreadable"), row(file("b"), "denied"), row(file("c"), "denied"))
    assert why(MARKER, seen) == f"waits for 2 files that are denied in the ledger, such as {PLACE}b"


def test_each_folder_with_files_needs_a_marker_of_its_own() -> None:
    two = Complete(folder="*/%Y/%m/%d/%H/", marker="_DONE")
    other = LandedFile("drops", "out/2026/11/24/10/a", 7, "e")
    seen = known(row(file()), row(other), listed=(file(), other))
    assert why(two, seen) == "waits for s3://drops/out/2026/11/24/10/_DONE"
    assert why(two, replace(seen, markers={PLACE: b"", "s3://drops/out/2026/11/24/10/": b""})) == ""


def test_a_folder_of_each_bucket_needs_a_marker_of_its_own() -> None:
    other = replace(file(), bucket="more-drops")
    seen = known(row(file()), row(other), listed=(file(), other))
    assert why(MARKER, seen) == f"waits for s3://more-drops/{FOLDER}_DONE"


def test_an_hour_without_files_is_complete_by_its_marker_and_never_by_silence() -> None:
    assert why(MARKER, known()) == ""
    assert why(MARKER, known(markers={})) == "waits for _DONE"
    assert why(QUIET, known(), NOW + timedelta(days=900)) == "waits for its first file"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"files": 1, "records": 10}', ""),
        (b'{"files": 1}', ""),
        (b'{"records": 10, "by": "spark"}', ""),
        (b'{"files": 2}', "names 2 files, and there are 1"),
        (b'{"files": 1, "records": 9}', "names 9 records, and there are 10"),
        (b'{"files": 0}', "names 0 files, and there are 1"),
        (b"", "must say"),
        (b"[]", "must say"),
        (b'{"files": "1"}', "must say"),
        (b'{"files": true}', "must say"),
        (b'{"rows": 1}', "must say"),
        (b"[" * 100_000, "must say"),
        (b"\xff", "must say"),
    ],
)
def test_a_manifest_is_held_against_files_and_records(content: bytes, told: str) -> None:
    said = why(MANIFEST, known(row(file()), listed=(file(),), markers={PLACE: content}))
    assert told in said
    assert bool(told) == bool(said)


def test_a_marker_makes_an_hour_complete_before_it_is_over() -> None:
    assert why(MARKER, known(row(file()), listed=(file(),)), TEN + timedelta(minutes=6)) == ""


def test_silence_counts_from_the_last_file_and_not_before_the_hour_is_over() -> None:
    late = replace(file(), event_time=PERIOD.end + timedelta(minutes=50))
    for one, end in ((file(), PERIOD.end), (late, late.event_time)):
        assert end is not None
        quiet = end + timedelta(minutes=30)
        seen = known(row(one), listed=(one,))
        found = judge(QUIET, PERIOD, seen, quiet - timedelta(seconds=1))
        assert (found.not_before, found.why) == (
            quiet,
            f"waits until {quiet:%Y-%m-%dT%H:%M:%SZ}, if no more files arrive",
        )
        assert why(QUIET, seen, quiet) == ""


def test_silence_is_not_enough_where_a_file_is_withheld_or_unread() -> None:
    for seen in (known(row(file(), "denied"), listed=(file(),)), known(row(file()), listed=(file(), file("b")))):
        assert why(QUIET, seen, NOW + timedelta(days=900)) != ""


def test_without_the_ledger_only_what_the_bucket_rules_out_is_said() -> None:
    bare = Known(services=("s",), listed=(file(),))
    assert why(MARKER, bare) == f"waits for {PLACE}_DONE"
    found = judge(MARKER, PERIOD, replace(bare, markers={PLACE: b""}), NOW)
    assert (found.why, found.files, found.rows) == ("", None, None)
