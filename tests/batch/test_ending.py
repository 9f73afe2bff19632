"""What the ledger gets at the end of a batch, what is said about it, and what the next pass over its files knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from forebay.batch.accounting import Fate
from forebay.batch.attempt.carrying_out import CarryingOut
from forebay.batch.attempt.ending import EndedBatches, Ending
from forebay.batch.attempt.reporting import Stages, reports_of
from forebay.batch.attempt.seen import Seen
from forebay.batch.attempt.turns import waiting_end
from forebay.batch.commits import Commits
from forebay.batch.events import BatchCommitted, ErasedRecordsDropped, FileHeld
from forebay.batch.one_pass.outcome import Pass, ReadAgain
from forebay.batch.one_pass.spec import KeptOut
from forebay.batch.plan import Plan
from forebay.content.end import FileEnd, unread_end
from forebay.content.outcome import ERASED
from forebay.declaration.loading import parse_service
from forebay.errors import Halt
from forebay.lake.layout import IDS
from forebay.lake.objects import open_objects
from forebay.landed_file import LandedFile
from forebay.ledger.claim import Claim
from forebay.ledger.decision import files_to_read
from forebay.ledger.entry import REPLAY, Entry
from forebay.ledger.ignored import CLEARED
from forebay.ledger.last_versions import KeptVersions, Versions
from forebay.ledger.versions import SAME_BYTES, Earlier, Sorted
from forebay.table.commit import Txn
from forebay.table.data_files.data_file import Written
from forebay.table.destination import Appended, AppendResult, Skipped
from tests.batch.world import SERVICE

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
    return files_to_read(Claim(files, found, lambda key: "append"))


def ended(file: LandedFile, outcome: Any, **more: Any) -> FileEnd:
    return replace(unread_end(file, outcome), **more)


def ending(split: Sorted, *ends: FileEnd) -> Ending:
    plan = Plan(generation="g", batch=1, began_at=AT, service={}, files=split.fresh, ends=ends, fates=())
    landed = frozenset(end.file.file_id for end in ends if end.lands)
    return Ending(plan, replace(split, landed=landed), {}, AT)


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


def test_the_row_of_a_replay_that_waits_for_a_retry_stays_for_the_retry_changes_it() -> None:
    split = split_of([FIRST, ALONE], earlier(FIRST, outcome=REPLAY), earlier(ALONE, outcome=REPLAY))
    found = ending(split, waiting_end(FIRST), ended(ALONE, "denied"))
    assert ([row["file_id"] for row in found.changed], found.leaving) == ([ALONE.file_id], [ALONE.file_id])
    assert {one.file for one in found.waiting} == {FIRST, ALONE}
    assert found.returning == []


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
    unread = ended(SECOND, "denied")
    seen.must_agree_with(made(unread, ended(ALONE, "loaded")), without)
    with pytest.raises(ReadAgain, match="left out after they had been read") as found:
        seen.must_agree_with(made(ended(SECOND, "loaded"), ended(ALONE, "loaded")), without)
    assert [end.file for end in found.value.files] == [SECOND]


def test_a_file_that_landed_is_left_out_until_passes_show_nothing_new() -> None:
    seen, split = Seen(split_of([FIRST, ALONE]), ()), split_of([ALONE])
    for found in ({"files": [ended(FIRST, "loaded", lines_before={1: 2})]}, {"known": {"alpha": None}}):
        seen.learn(ReadAgain("new", **found))  # type: ignore[arg-type]
    assert (seen.to_read, [end.lines_before for end in seen.ends]) == ([ALONE], [{}])
    seen.must_agree_with(made(ended(FIRST, "loaded"), ended(ALONE, "loaded")), split)
    with pytest.raises(ReadAgain, match="gave different records"):
        seen.must_agree_with(made(ended(FIRST, "loaded"), ended(ALONE, "loaded")), split_of([FIRST, ALONE]))
    seen.learn(ReadAgain("nothing new", known={"alpha": None}))  # type: ignore[dict-item]
    assert (seen.to_read, seen.ends) == ([FIRST, ALONE], [])


def test_findings_are_never_in_vain() -> None:
    seen = Seen(split_of([FIRST, SECOND, THIRD, ALONE]), ())
    for file in (FIRST, SECOND, THIRD):
        seen.learn(ReadAgain("poison", files=[ended(file, "unreadable")]))
    for n in range(4):
        seen.learn(ReadAgain("other columns", known={f"t{n}": None}))  # type: ignore[dict-item]
    assert seen.to_read == [ALONE]


def test_a_second_pass_over_the_same_files_must_bring_the_same_records() -> None:
    seen = Seen(split := split_of([ALONE]), ())
    seen.must_agree_with(made(ended(ALONE, "loaded", content_hash="h")), split)
    seen.learn(ReadAgain("a table failed", tables={"alpha": KeptOut("table-failed")}))
    seen.must_agree_with(made(ended(ALONE, "loaded", content_hash="h")), split)
    with pytest.raises(ReadAgain, match="gave different records"):
        seen.must_agree_with(made(ended(ALONE, "loaded", content_hash="other")), split)
    seen.learn(ReadAgain("other records"))
    seen.must_agree_with(made(ended(ALONE, "loaded", content_hash="other")), split)


def test_the_events_of_a_batch_count_each_file_by_its_outcome() -> None:
    outcomes = ("loaded", "empty", "missing", "denied", "unavailable", "unreadable", "deleted")
    files = [
        LandedFile("landing", f"{n}", 1, f"e{n}", "v", "1", AT - timedelta(seconds=n) if n else None) for n in range(12)
    ]
    ends = [ended(file, outcome) for file, outcome in zip(files, outcomes, strict=False)]
    ends[0] = replace(ends[0], documents=5, bytes_read=7)
    left = [
        ("duplicate", SAME_BYTES),
        ("superseded", "overwritten"),
        ("superseded", "x"),
        ("ignored", "r"),
        ("skipped", "o"),
    ]
    entries = [
        Entry(file=file, outcome=outcome, reason=why) for file, (outcome, why) in zip(files[7:], left, strict=True)
    ]  # type: ignore[arg-type]
    fates = [Fate(files[0].file_id, "write", 3, "alpha", 0), Fate(files[0].file_id, "drop", 2, reason=ERASED)]
    split = replace(split_of(files[:7]), left_out=tuple(entries), known=(FIRST,))
    plan = Plan(
        generation="g", batch=1, began_at=AT, service={}, files=tuple(files), ends=tuple(ends), fates=tuple(fates)
    )
    events = [*reports_of("s", Ending(plan, split, {}, AT), Stages(), AT)]
    (told,) = [one for one in events if isinstance(one, BatchCommitted)]
    counts = {
        name: value for name, value in vars(told).items() if name.endswith("files") or name in ("bytes", "dropped")
    }
    assert counts == {
        "files": 12,
        "known_files": 1,
        "duplicate_files": 1,
        "superseded_files": 2,
        "ignored_files": 1,
        "forgotten_files": 0,
        "deleted_files": 1,
        "missing_files": 1,
        "withheld_files": 2,
        "refused_files": 1,
        "bytes": 7,
        "dropped": 2,
    }
    assert (told.records, told.written, told.tables, told.latency_max_seconds) == (5, 3, 1, 6)
    assert [one.outcome for one in events if isinstance(one, FileHeld)] == [*outcomes[2:6]]
    assert [one.records for one in events if isinstance(one, ErasedRecordsDropped)] == [2]


def test_the_events_of_a_batch_count_forgotten_and_replaced_files_once_and_no_delay_of_replays() -> None:
    later = replace(SECOND, etag="other", event_time=AT + timedelta(seconds=9))
    rows = [earlier(FIRST), earlier(ALONE, outcome="forget")]
    found = {(one.file.bucket, one.file.key): [one] for one in rows}
    split = files_to_read(Claim([later, ALONE], found, lambda key: "replace"))
    forgotten = ending(split, ended(later, "empty"), unread_end(ALONE, "forgotten"))
    (told,) = [one for one in reports_of("s", forgotten, Stages(), later.event_time) if isinstance(one, BatchCommitted)]  # type: ignore[arg-type]
    assert (told.files, told.superseded_files, told.forgotten_files) == (2, 1, 1)
    replay = ending(split_of([FIRST], earlier(FIRST, outcome=REPLAY)), ended(FIRST, "empty"))
    (told,) = [one for one in reports_of("s", replay, Stages(), AT) if isinstance(one, BatchCommitted)]
    assert (told.files, told.superseded_files, told.latency_max_seconds) == (1, 0, None)


def test_a_pass_lacks_a_fate_only_of_a_file_that_landed() -> None:
    ends = [ended(FIRST, "loaded", documents=2, refused=1), ended(ALONE, "unreadable", documents=4)]
    fates = [Fate(FIRST.file_id, "write", 2, "alpha", 0), Fate(FIRST.file_id, "quarantine", 1)]
    assert Pass(ends, fates, Written({}, {}), "lake").unaccounted() == []
    assert [*Pass(ends, fates, Written({}, {}), "lake").landed] == [FIRST.file_id]
    assert Pass(ends, fates[:1], Written({}, {}), "lake").unaccounted() == [FIRST.uri]
    ends = [replace(end, lines_before={n: 0}) for n, end in enumerate(ends)]
    assert Pass(ends, fates, Written({}, {}), "lake").files_by_piece == {0: FIRST.file_id}


def test_files_that_are_read_again_for_tables_that_failed_must_bring_the_rows_of_those_tables() -> None:
    ends = (ended(FIRST, "loaded"), ended(ALONE, "denied"))
    fates = tuple(Fate(FIRST.file_id, fate, n, table, 0) for fate, n, table in WAYS)
    plan = Plan(generation="g", batch=1, began_at=AT, service={}, files=(FIRST, ALONE), ends=ends, fates=fates)
    assert plan.landing == (FIRST,)
    assert plan.tables == {"alpha", "beta"}
    assert plan.reads_like(ends, fates, ["alpha"])
    assert plan.reads_like(ends, fates[:1], ["alpha"]), "nothing else is asked for"
    assert plan.reads_like(ends[:1], fates, ["alpha"]), "a file that did not land then brings nothing now"
    assert not plan.reads_like(ends, fates[1:], ["alpha"])
    assert not plan.reads_like(ends, fates[:1], ["alpha", "beta"])
    assert not plan.reads_like([*ends, ended(SECOND, "loaded")], fates, ["alpha"])
    assert not plan.reads_like(ends[1:], fates, ["alpha"])


WAYS = [("write", 2, "alpha"), ("write", 1, "beta"), ("drop", 3, "alpha"), ("drop", 1, "gamma"), ("park", 1, None)]


def test_a_plan_knows_which_deletions_forebay_made() -> None:
    ours = Entry(file=FIRST, outcome="ignored", reason=CLEARED)
    left_out = (ours, Entry(file=ALONE, outcome="ignored", reason="another"))
    plan = Plan(generation="g", batch=1, began_at=AT, service={}, files=(FIRST,), ends=(), fates=(), left_out=left_out)
    assert plan.cleared == {FIRST.file_id}


class Walked(list[FileEnd]):
    walks = 0

    def __iter__(self) -> Iterator[FileEnd]:
        self.walks += 1
        return super().__iter__()


def test_a_table_that_fails_beside_thousands_of_deletions_costs_one_walk_over_them() -> None:
    deleted = Walked([ended(FIRST, "deleted"), ended(THIRD, "deleted")])
    plan = SimpleNamespace(without_bytes=deleted, landing=(FIRST, SECOND, THIRD, ALONE))
    begun = SimpleNamespace(plan=plan, split=SimpleNamespace(superseded=()))

    def of(files: Sequence[LandedFile], *_: Any, **__: Any) -> Pass:
        return Pass([ended(file, "loaded") for file in files], [], Written({}, {}), "")

    parts = SimpleNamespace(one_pass=SimpleNamespace(of=of, without_duplicates=lambda made, dedupe: made))
    writing = SimpleNamespace(service=None, shared_beside={})
    carrying_out = CarryingOut(cast(Any, parts), cast(Any, writing), Stages())
    made = carrying_out.read_unwritten(cast(Any, begun), cast(Any, None), {})
    assert [end.file for end in made.ends] == [SECOND, ALONE, FIRST, THIRD]
    assert deleted.walks == 1


@pytest.mark.parametrize(
    ("result", "kept"), [(Appended(6, 1, 1, 1, 0.1), 6), (Skipped(), 5)], ids=["commits", "repeats"]
)
def test_a_batch_that_starts_again_does_not_count_a_commit_that_its_earlier_attempt_made(
    tmp_path: Path, result: AppendResult, kept: int
) -> None:
    """So a `RESTORE` beside it is not taken for that commit: the next look reads the log from the version before."""
    lake, service = f"file://{tmp_path}", parse_service({"service.toml": SERVICE + "dedupe = { by = ['event_id'] }"})
    ledger, nothing = (
        SimpleNamespace(path="", rows=41, last_versions=KeptVersions(open_objects(lake), "s")),
        cast(Any, None),
    )
    ledger.last_versions.keep(Versions(5, 5, 40))
    logs = cast(Any, SimpleNamespace(version_at=lambda path: 6))
    made = Commits(
        spark=nothing,
        service=service,
        lake=lake,
        generation="g",
        txn=Txn("s", 1),
        began_at=AT,
        logs=logs,
        emit=lambda event: None,
    )
    made.must_be_in(made.own(IDS), 1, result)
    EndedBatches(lake, cast(Any, ledger), logs, open_objects(f"{lake}/ids")).keep_versions(made)
    assert ledger.last_versions.last == Versions(6, kept, 41)
