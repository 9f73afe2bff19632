"""What the ledger gets at the end of a batch, and what the next pass over its files knows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from forebay.batch.attempt.ending import Ending
from forebay.batch.attempt.seen import Seen
from forebay.batch.one_pass.outcome import Pass, ReadAgain
from forebay.batch.one_pass.told import KeptOut
from forebay.batch.plan import Plan
from forebay.content.end import FileEnd, unread_end
from forebay.errors import Halt
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.entry import REPLAY
from forebay.ledger.versions import SAME_BYTES, Earlier, Sorted
from forebay.table.data_files.data_file import Written

AT = datetime(2026, 11, 21, 10, tzinfo=UTC)
FIRST, SECOND, THIRD, ALONE = (
    LandedFile("landing", key, 1, "e", f"v{n}", f"{n:016X}", AT) for n, key in enumerate("aaab")
)


def earlier(file: LandedFile, **more: Any) -> Earlier:
    counts = {"records": 2, "written": 2, "quarantined": 0, "parked": 0, "dropped": 0, "tables": {"alpha": 2}}
    told = {"file_id": file.file_id, "outcome": "loaded", "reason": None, "detail": None, "superseded_by": None}
    return Earlier(file, told | counts | more)


def split_of(files: list[LandedFile], *versions: Earlier) -> Sorted:
    found: dict[tuple[str, str], list[Earlier]] = {}
    for one in versions:
        found.setdefault((one.file.bucket, one.file.key), []).append(one)
    return Claim(files, found, lambda key: "append").to_read()


def ended(file: LandedFile, outcome: Any, **more: Any) -> FileEnd:
    return replace(unread_end(file, outcome), **more)


def ending(split: Sorted, *ends: FileEnd) -> Ending:
    plan = Plan(generation="g", batch=1, began_at=AT, service={}, files=split.fresh, ends=ends, fates=())
    landed = {end.file.file_id for end in ends if end.lands}
    return Ending(plan, split, split.superseded_by(landed), {}, AT)


def with_duplicate(outcome: Any) -> Ending:
    """A replay whose bytes came a second time, under the next version of its key."""
    duplicate = earlier(SECOND, outcome="duplicate", reason=SAME_BYTES, written=0, tables={}, records=0)
    split = split_of([FIRST], earlier(FIRST, outcome=REPLAY), duplicate)
    return ending(split, ended(FIRST, outcome))


@pytest.mark.parametrize(
    ("outcome", "stand_ins"), [("missing", 1), ("changed", 1), ("denied", 0), ("unreadable", 0), ("empty", 0)]
)
def test_a_duplicate_is_read_only_in_the_place_of_a_replay_that_is_gone(outcome: str, stand_ins: int) -> None:
    found = with_duplicate(outcome)
    assert [one.file for one in found.stand_ins] == [SECOND] * stand_ins
    assert [row["outcome"] for row in found.changed if row["file_id"] == SECOND.file_id] == [REPLAY] * stand_ins
    assert [(one.file, one.tries) for one in found.waiting if one.file == SECOND] == [(SECOND, 1)] * stand_ins


@pytest.mark.parametrize(("tries", "then"), [(None, 2), (4, 5)])
def test_a_replay_that_s3_withheld_waits_longer_each_time(tries: int | None, then: int) -> None:
    split = split_of([FIRST, ALONE], earlier(FIRST, outcome=REPLAY, tries=tries))
    found = ending(split, ended(FIRST, "denied"), ended(ALONE, "denied"))
    assert [(one.file, one.tries) for one in found.waiting] == [(FIRST, then)], "its entry says so of another file"


@pytest.mark.parametrize(
    ("told", "detail"),
    [({"detail": "no key", "reason": "r"}, "no key"), ({"reason": "r"}, "r"), ({}, "")],
)
def test_the_row_of_a_replay_that_was_not_read_says_why(told: dict[str, str], detail: str) -> None:
    split = split_of([FIRST], earlier(FIRST, outcome=REPLAY))
    (row,) = ending(split, ended(FIRST, "missing", **told)).failed
    assert row["detail"] == f"missing: {detail}"


def test_a_file_that_is_forgotten_lands_with_the_hash_of_its_bytes() -> None:
    """By it, the same bytes in the same batch stay out, too."""
    split = split_of([FIRST, ALONE], earlier(FIRST, outcome="forget", content_hash="h"))
    seen = Seen(split, ())
    assert [(end.outcome, end.content_hash) for end in seen.ends] == [("forgotten", "h")]
    assert seen.to_read == [ALONE]
    nameless = Seen(split_of([FIRST], earlier(FIRST, outcome="forget", content_hash=None)), ())
    assert [end.content_hash for end in nameless.ends] == [""]


def made(*ends: FileEnd) -> Pass:
    return Pass(ends, (), Written({}, {}), "lake")


def test_passes_that_show_nothing_new_end_at_the_third() -> None:
    seen = Seen(split_of([ALONE]), ())
    for _ in range(2):
        seen.learn(ReadAgain("other records"))
    seen.learn(ReadAgain("a table failed", tables={"alpha": KeptOut("table-failed")}))
    with pytest.raises(Halt, match="the files were read 3 times"):
        seen.learn(ReadAgain("a table failed", tables={"alpha": KeptOut("table-failed")}))


def test_a_file_that_is_left_out_is_not_read_again_and_one_that_landed_is_a_reason_to() -> None:
    seen = Seen(split_of([FIRST, ALONE]), ())
    poison = ended(FIRST, "unreadable")
    seen.learn(ReadAgain("too many", files=[poison]))
    assert (seen.to_read, list(seen.ends)) == ([ALONE], [poison])
    without = split_of([SECOND, ALONE], earlier(SECOND))
    with pytest.raises(ReadAgain, match="left out after they had been read") as found:
        seen.must_agree_with(made(ended(SECOND, "loaded"), ended(ALONE, "loaded")), without)
    assert [end.file for end in found.value.files] == [SECOND]


def test_a_second_pass_over_the_same_files_must_bring_the_same_records() -> None:
    seen = Seen(split := split_of([ALONE]), ())
    seen.must_agree_with(made(ended(ALONE, "loaded", content_hash="h")), split)
    seen.learn(ReadAgain("a table failed", tables={"alpha": KeptOut("table-failed")}))
    seen.must_agree_with(made(ended(ALONE, "loaded", content_hash="h")), split)
    with pytest.raises(ReadAgain, match="gave different records"):
        seen.must_agree_with(made(ended(ALONE, "loaded", content_hash="other")), split)
    seen.learn(ReadAgain("other records"))
    seen.must_agree_with(made(ended(ALONE, "loaded", content_hash="other")), split)
