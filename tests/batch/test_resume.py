"""What becomes of a file of a batch that is tried again, for all that it can answer, and wherever the first try stopped."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from typing import get_args

import pytest

from forebay.batch.accounting import Fate, entries_of
from forebay.batch.plan import Plan
from forebay.batch.resume import Resumed, resumed
from forebay.content.end import FileEnd
from forebay.content.outcome import ReadOutcome
from forebay.errors import Halt
from forebay.lake.layout import PARKED, QUARANTINE
from forebay.landed_file import LandedFile
from forebay.ledger.versions import Earlier, Superseded

FILE = LandedFile("landing", "in/a.json", 10, "etag", None, "01", datetime(2026, 11, 21, tzinfo=UTC))
ORDER = ("alpha", "beta", QUARANTINE, PARKED)
ANSWERS = ("loaded", "denied", "unavailable", "missing", "changed")
FATES = (
    Fate(FILE.file_id, "write", 2, "alpha", 0),
    Fate(FILE.file_id, "write", 3, "beta", 0),
    Fate(FILE.file_id, "quarantine", 1, reason="not-json"),
    Fate(FILE.file_id, "park", 4),
)


def end(outcome: ReadOutcome) -> FileEnd:
    counts = {"documents": 9, "refused": 1} if outcome == "loaded" else {"documents": 0, "refused": 0}
    nothing = {"bytes_read": 0, "expanded_bytes": 0, "requests": 1, "head": ""}
    return FileEnd(file=FILE, outcome=outcome, reason=None, detail="said the test", **counts, **nothing)


def plan(outcome: ReadOutcome) -> Plan:
    return Plan(
        generation="first",
        batch=7,
        began_at=datetime(2026, 11, 21, tzinfo=UTC),
        service={},
        files=(FILE,),
        ends=(end(outcome),),
        fates=FATES if outcome == "loaded" else (),
    )


def again(then: ReadOutcome, now: ReadOutcome, done: int) -> Resumed:
    read = [end(now)] if then == "loaded" else []
    return resumed(plan(then), read, FATES if now == "loaded" else (), frozenset(ORDER[:done]))


CELLS = list(product(ANSWERS, ANSWERS, range(1, len(ORDER) + 1)))


@pytest.mark.parametrize(("then", "now", "done"), CELLS)
def test_every_answer_twice_at_every_stop(then: ReadOutcome, now: ReadOutcome, done: int) -> None:
    """The ledger counts what stands, and a row that is to be written is one that was read."""
    if then == "loaded" and now in ("denied", "unavailable") and done < len(ORDER):
        with pytest.raises(Halt, match=r"rows of s3://landing/in/a.json are in alpha"):
            again(then, now, done)
        return
    found = again(then, now, done)
    (entry,) = entries_of(found.plan.ends, found.plan.fates)
    whole = then == "loaded" and (now == "loaded" or done == len(ORDER))
    if then != "loaded":
        assert (entry.outcome, entry.records) == ("missing" if then == "changed" else then, 0)
    elif whole:
        assert (entry.outcome, entry.records, found.lost) == ("loaded", 10, {})
    else:
        stands = sum(fate.rows for fate in FATES[:done])
        assert (entry.outcome, entry.reason, entry.records) == ("loaded", "gone-midway", stands)
        assert found.lost == {FILE: 10 - stands}
    assert found.usable == ({FILE.file_id} if then == now == "loaded" else frozenset())


@pytest.mark.parametrize("now", ANSWERS)
def test_a_file_of_which_nothing_stands_ends_as_it_reads_now(now: ReadOutcome) -> None:
    found = resumed(plan("loaded"), [end(now)], FATES if now == "loaded" else (), frozenset({"another table"}))
    (entry,) = entries_of(found.plan.ends, found.plan.fates)
    assert entry.outcome == ("missing" if now == "changed" else now)
    assert entry.records == (10 if now == "loaded" else 0)


def replayed(**held: int) -> Superseded:
    """The file itself, as it stands since it was read before."""
    tables = {"alpha": 2, "beta": 3}
    row = {"file_id": FILE.file_id, "outcome": "replay", "tables": tables, "quarantined": 1, "parked": 4} | held
    return Superseded(Earlier(FILE, row), FILE)


@pytest.mark.parametrize("now", ["missing", "changed"])
def test_a_replay_whose_file_goes_midway_leaves_its_rows_as_they_stand_where_it_reads_as_before(
    now: ReadOutcome,
) -> None:
    found = resumed(plan("loaded"), [end(now)], (), frozenset({"alpha"}), [replayed()])
    assert (found.usable, found.lost, found.landed) == (frozenset(), {}, frozenset())
    (entry,) = entries_of(found.plan.ends, found.plan.fates)
    assert (entry.outcome, entry.reason, entry.tables) == ("loaded", "not-replayed", {"alpha": 2, "beta": 3})
    assert found.fates == [FATES[0]], "what came in the first try is what is expected there"
    again = resumed(found.plan, [end("denied")], (), frozenset({"alpha", PARKED}), [replayed()])
    assert (again.landed, again.fates) == (frozenset(), [FATES[0]]), "nor is anything in what the second try wrote"
    back = resumed(found.plan, [end("loaded")], FATES, frozenset({"alpha", PARKED}), [replayed()])
    assert back.landed == {FILE.file_id}
    assert [fate for fate in back.plan.fates if fate.stood] == [replace(FATES[3], stood=True)], (
        "it was passed over there"
    )
    differs = resumed(plan("loaded"), [end(now)], (), frozenset({"alpha"}), [replayed(parked=5)])
    assert differs.lost == {FILE: 8}, "a record may have gone from one table to another"


def test_a_file_that_reads_differently_after_rows_of_it_stand_halts() -> None:
    other = (replace(FATES[0], rows=3), *FATES[1:])
    with pytest.raises(Halt, match="reads differently than in the first try"):
        resumed(plan("loaded"), [replace(end("loaded"), documents=10)], other, frozenset({"alpha"}))


def late(now: ReadOutcome) -> Resumed:
    """All rows stand, and the vault has none of the originals."""
    return resumed(plan("loaded"), [end(now)], (), frozenset(ORDER), vault_waits=True)


def test_a_file_whose_rows_stand_all_is_read_again_for_the_vault_or_told_as_lost() -> None:
    with pytest.raises(Halt, match=r"its values for the vault follow"):
        late("denied")
    gone = late("missing")
    (entry,) = entries_of(gone.plan.ends, gone.plan.fates)
    assert (entry.outcome, entry.reason, entry.records) == ("loaded", "gone-midway", 10)
    assert "its personal fields" in (entry.detail or "")
    assert (gone.lost, gone.usable) == ({FILE: 10}, frozenset())


def test_a_duplicate_whose_first_copy_is_gone_is_written_where_its_table_is_still_to_come() -> None:
    """Alpha has the first copy, and keeps it; beta would have none."""
    drop = {"fate": "drop", "violated": ("_duplicate",)}
    then = (replace(FATES[0], rows=1), replace(FATES[0], rows=1, **drop), replace(FATES[1], rows=3, **drop), *FATES[2:])
    begun = replace(plan("loaded"), fates=then)
    found = resumed(begun, [end("loaded")], FATES, frozenset({"alpha"}))
    assert found.usable == {FILE.file_id}
    (entry,) = entries_of(found.plan.ends, found.plan.fates)
    assert (entry.records, entry.tables, entry.dropped) == (10, {"alpha": 1, "beta": 3}, 1)


def test_a_record_that_a_rule_drops_now_is_no_duplicate() -> None:
    """A file that reads otherwise than in the first try halts, also where as many records come of it."""
    drop = replace(FATES[1], fate="drop", violated=("some-rule",))
    with pytest.raises(Halt, match="reads differently than in the first try"):
        resumed(plan("loaded"), [end("loaded")], (FATES[0], drop, *FATES[2:]), frozenset({"alpha"}))


def test_a_bucket_that_is_not_there_may_be_back_and_its_files_are_not_gone() -> None:
    """The address may be wrong for a while: what stands is not counted as all that there is."""
    nowhere = replace(end("missing"), reason="no-such-bucket")
    with pytest.raises(Halt, match="S3 does not give it now"):
        resumed(plan("loaded"), [nowhere], (), frozenset({"alpha"}))


def test_every_outcome_of_a_file_is_among_the_answers() -> None:
    assert {*ANSWERS, "empty", "unreadable", "forgotten"} == set(get_args(ReadOutcome))


@pytest.mark.parametrize("outcome", ANSWERS)
def test_a_plan_that_is_read_back_is_the_one_that_was_written(outcome: ReadOutcome) -> None:
    assert Plan.decode(plan(outcome).encode()) == plan(outcome)
